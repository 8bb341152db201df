// Spans of time as a user writes them: "90s", "10m", "2h", "30d"; a number without a unit has the option's
// own unit.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace carve::cli {

inline constexpr std::chrono::hours day{24};
inline constexpr std::chrono::seconds max_time_span = 3650 * day;

// Returns the span, or the error in the word. `unit` applies to a number without a unit: s, m, h or d.
Result<std::chrono::seconds, std::string> parse_time_span(const std::string& word, char unit = 's');
// A check for CLI11: returns an empty string, or the error in the word.
std::string check_time_span(const std::string& word);

}  // namespace carve::cli
