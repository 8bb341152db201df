// The clocks of this machine. Only the agent's outermost code reads them; all other code gets the time as an
// argument.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace carve::os {

inline int64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}
inline int64_t monotonic_ns() { return read_clock(CLOCK_MONOTONIC); }
inline int64_t utc_ns() { return read_clock(CLOCK_REALTIME); }

// Returns a UTC time in RFC 3339 form with 3 or 9 decimals: "2026-11-23T10:00:00.123Z".
enum class Decimals : uint8_t { milliseconds, nanoseconds };
std::string rfc3339(int64_t utc_ns, Decimals);

inline constexpr int64_t millisecond = 1'000'000;
inline constexpr int64_t second = 1'000'000'000;

}  // namespace carve::os
