// Computes when a program that has ended is restarted. The first delay is 1 s, and each further delay is
// twice as long, up to 60 s: 1, 2, 4, 8, 16, 32, 60, 60 s. A program that ran for 10 minutes is considered to
// have recovered, so the next delay is 1 s again. Services and jobs share this rule.
//
// Times are nanoseconds on a clock that is never stepped. The caller converts times that it stored before a
// reboot.
#pragma once

#include <algorithm>
#include <cstdint>

namespace carve::workload {

using Ns = int64_t;
inline constexpr Ns second_ns = 1'000'000'000;
inline constexpr Ns min_backoff_ns = second_ns;
inline constexpr Ns max_backoff_ns = 60 * second_ns;
inline constexpr Ns backoff_reset_ns =
    600 * second_ns;  // Run time after which a program is considered to have recovered.

// Returns `moment` + `duration`, at most INT64_MAX. The duration is not negative.
constexpr Ns after(Ns moment, Ns duration) {
  Ns sum = 0;
  return __builtin_add_overflow(moment, duration, &sum) ? INT64_MAX : sum;
}

// Returns the time from `from` to `to`, or 0 if `to` is earlier, at most INT64_MAX. The times of a program
// come from its user and are not trusted.
constexpr Ns between(Ns from, Ns to) {
  Ns difference = 0;
  if (to <= from) return 0;
  return __builtin_sub_overflow(to, from, &difference) ? INT64_MAX : difference;
}

// Returns the delay before the next start of a program that has ended `failures` consecutive times.
constexpr Ns backoff_ns(unsigned failures) {
  if (failures == 0) return 0;
  return std::min(min_backoff_ns << std::min(failures - 1, 6u), max_backoff_ns);
}

// Returns the new number of consecutive ends after another end of a program that ran for `ran` nanoseconds.
constexpr unsigned failures_after(unsigned failures, Ns ran) {
  if (ran >= backoff_reset_ns) return 1;
  return failures == UINT32_MAX ? failures : failures + 1;
}

}  // namespace carve::workload
