// Reads members of JSON from the API server, which may have any type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

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

// Returns the member; 0 if it is missing or is no whole number. Larger numbers become UINT32_MAX.
inline uint32_t count_at(const api::Json& object, const char* key) {
  const api::Json& value = member(object, key);
  return value.is_number_unsigned()
             ? static_cast<uint32_t>(std::min<uint64_t>(value.get<uint64_t>(), UINT32_MAX))
             : 0;
}

// Returns the element of status.conditions with this type, or null.
inline const api::Json& condition_of(const api::Json& object, std::string_view type) {
  static const api::Json none;
  for (const api::Json& one : member(member(object, "status"), "conditions"))
    if (text_at(one, "type") == type) return one;
  return none;
}

}  // namespace carve::controller
