// JSON Schemas (2020-12) of the API's documents, from the same descriptions that are used to read and write
// them (wire/api/json_type.h). An absent field keeps its default, so no field is required.
#pragma once

#include <string>

#include "wire/api/json.h"

namespace carve::api {

std::string schema(const JsonType&);

template <Document T>
std::string schema() {
  return schema(json_type<T>());
}

}  // namespace carve::api
