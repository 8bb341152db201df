// The API's description for programs: OpenAPI 3.1 (GET /openapi.json), made from the table of the routes and
// from the structs of the documents. The schemas of the kinds are JSON Schemas (2020-12).
#pragma once

#include <span>
#include <string>

#include "controller/api/route.h"

namespace carve::controller {

// Returns the document. A path with {kind} is one path for each kind with replicas. Stops if a route names a
// schema that there is not.
std::string openapi_document(std::span<const Route> routes, const std::string& version);

}  // namespace carve::controller
