// Times as a user writes them: "2026-11-01" or "2026-11-01T08:30:00Z" (RFC 3339, UTC only).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/failure.h"

namespace carve {

// Returns the nanoseconds since 1970. A date without a time means midnight at its beginning. `what` names the
// text in the failure (invalid_argument). The year must be 1970 to 2199.
Outcome<int64_t> parse_utc(std::string_view what, std::string_view text);

struct UtcMonth {
  int64_t from_ns = 0;
  int64_t to_ns = 0;  // The beginning of the next month.
};
UtcMonth month_of(int64_t utc_ns);

// Returns a time in RFC 3339 form, in whole seconds.
std::string text_utc(int64_t utc_ns);

}  // namespace carve
