// Reads values of JSON at a pointer (RFC 6901), such as "/metadata/name".
#pragma once

#include <string>

#include "wire/api/json_value.h"

namespace carve::kubernetes {

// Returns the text at the pointer; empty if there is none.
inline std::string text_at(const api::Json& object, const char* pointer) {
  const api::Json::json_pointer at(pointer);
  return object.is_object() && object.contains(at) && object.at(at).is_string()
             ? object.at(at).get<std::string>()
             : "";
}

}  // namespace carve::kubernetes
