// Reads members of JSON from the API server, which may have any type.
#pragma once

#include <string>

#include "wire/api/json_value.h"

namespace carve::controller {

// Returns the member; null if there is none.
inline const api::Json& member(const api::Json& object, const char* key) {
  static const api::Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

// Returns the member; an empty object if it is missing or is no object.
inline const api::Json& object_at(const api::Json& object, const char* key) {
  static const api::Json none = api::Json::object();
  const api::Json& value = member(object, key);
  return value.is_object() ? value : none;
}

// Returns the member; empty if it is missing or is no text.
inline std::string text_at(const api::Json& object, const char* key) {
  const api::Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace carve::controller
