// Entries of use: who held what, from when to when, and why it ended. An invoice is a sum over them.
//
// A moment carries three numbers, because no single clock is right: people and bills read UTC, and UTC can be
// stepped; the monotonic clock never is, and starts again with each boot. Within one boot a duration is the
// difference of the monotonic clocks, whatever happened to UTC; across boots it is the difference of UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/slice.h"

namespace carve::ledger {

struct Stamp {
  int64_t utc_ns = 0;   // Since 1970.
  std::string boot_id;  // /proc/sys/kernel/random/boot_id
  int64_t monotonic_ns = 0;

  friend bool operator==(const Stamp&, const Stamp&) = default;
};

// Never negative.
int64_t duration_ns(const Stamp& from, const Stamp& to);

struct Use {
  uint64_t id = 0;  // Never used twice.
  Allocation what;
  Stamp from;
  std::optional<Stamp> to;  // None: still held.
  std::string why;          // It ended.

  friend bool operator==(const Use&, const Use&) = default;
};

}  // namespace carve::ledger
