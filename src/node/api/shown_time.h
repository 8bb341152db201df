// Converts recorded moments to the clock as it is set now.
//
// After the clock is set by a day, a slice of a few seconds would seem a day old, or created in the future.
// Within one boot CLOCK_MONOTONIC gives the true distance. Moments are shown as they were recorded unless the
// clock has since been set by more than a second.
#pragma once

#include <cstdlib>

#include "ledger/usage_record.h"

namespace carve::node {

inline int64_t shown_utc_ns(const ledger::Stamp& at, const ledger::Stamp& now) {
  constexpr int64_t max_drift_ns = 1'000'000'000;
  if (at.boot_id != now.boot_id) return at.utc_ns;
  const int64_t by_distance = now.utc_ns - ledger::duration_ns(at, now);
  return std::abs(by_distance - at.utc_ns) > max_drift_ns ? by_distance : at.utc_ns;
}

}  // namespace carve::node
