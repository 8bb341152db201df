// The query of a request: "limit=5&labelSelector=app%3Dweb".
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/failure.h"

namespace carve::controller {

inline constexpr size_t max_shown_bytes = 80;  // What a sentence repeats of a caller's text.

// Returns the parameters, decoded. Fails for a malformed %XX, for a parameter that is there twice and for one
// that `known` does not have.
Outcome<std::map<std::string, std::string>> parse_query(const std::string& query,
                                                        std::initializer_list<const char*> known);

}  // namespace carve::controller
