// Reads the JSON of a pod that has not been validated yet.
#pragma once

#include <string>

#include "wire/api/json_value.h"

namespace carve::dialects {

// The lists of a pod's spec whose containers have resources.
inline constexpr const char* lists_with_resources[] = {"containers", "initContainers"};

// Returns a member of an object, or null if the value is not an object or has no such member.
api::Json* member(api::Json& object, const char* key);
const api::Json* member(const api::Json& object, const char* key);
// Like the function above; also returns null for a null object.
const api::Json* member(const api::Json* object, const char* key);

// Returns the text of a member. Empty if it is missing or not a text.
std::string text_member(const api::Json& object, const char* key);

// Returns a quantity, which may be a text or a number, as a text.
std::string quantity_text(const api::Json& value);

}  // namespace carve::dialects
