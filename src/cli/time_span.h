// Time spans as users write them: "90s", "10m", "2h", "30d". A number without a unit has the option's own
// unit.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace carve::cli {

inline constexpr std::chrono::hours day{24};
inline constexpr std::chrono::seconds max_time_span = 3650 * day;

// Returns the span, or an error message. `unit` (s, m, h or d) applies to a number without a unit.
Result<std::chrono::seconds, std::string> parse_time_span(const std::string& word, char unit = 's');
// A check for CLI11: returns an error message, or an empty string if the word is valid.
std::string check_time_span(const std::string& word);

}  // namespace carve::cli
