// Moments as a user writes them: "2026-11-01" or "2026-11-01T08:30:00Z" (RFC 3339, only UTC).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/failure.h"

namespace carve {

// Returns the nanoseconds since 1970; a day without a time means its first moment. `what` names the text in
// the failure (invalid_argument). The year is 1970 to 2199.
Outcome<int64_t> parse_utc(std::string_view what, std::string_view text);

struct UtcMonth {
  int64_t from_ns = 0;
  int64_t to_ns = 0;  // Begin of the next one.
};
UtcMonth month_of(int64_t utc_ns);

// Returns a moment in RFC 3339 form, in whole seconds.
std::string text_utc(int64_t utc_ns);

}  // namespace carve
