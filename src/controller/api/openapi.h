// The API's machine-readable description: OpenAPI 3.1 (GET /openapi.json), generated from the table of routes
// and the structs of the documents. The schemas of the kinds are JSON Schemas (2020-12).
#pragma once

#include <span>
#include <string>

#include "controller/api/route.h"

namespace carve::controller {

// Returns the document. A path with {kind} becomes one path for each kind with replicas. Aborts if a route
// names a schema that does not exist.
std::string openapi_document(std::span<const Route> routes, const std::string& version);

}  // namespace carve::controller
