// The query of a request: "limit=5&labelSelector=app%3Dweb".
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/failure.h"

namespace carve::controller {

inline constexpr size_t max_shown_bytes = 80;  // Limit of a caller's text that is quoted in a message.

// Returns the decoded parameters. Fails for a malformed %XX, a repeated parameter, and a parameter that is
// not in `known`.
Outcome<std::map<std::string, std::string>> parse_query(const std::string& query,
                                                        std::initializer_list<const char*> known);

}  // namespace carve::controller
