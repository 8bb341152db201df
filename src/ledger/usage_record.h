// Entries of use: who held what, from when to when, and why it ended. An invoice is a sum over them.
//
// A moment carries three numbers, because no single clock is right: people and bills read UTC, and UTC can be
// stepped; the monotonic clock never is, and starts again with each boot. Within one boot a duration is the
// difference of the monotonic clocks, whatever happened to UTC; across boots it is the difference of UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

// What of a slice can be changed while it lives; memory and share are those of each of its devices.
struct Terms {
  Bytes memory;
  Share share;
  Policy policy = Policy::fixed_share;
  LatencyClass latency = LatencyClass::batch;
  Isolation isolation = Isolation::memory;

  friend bool operator==(const Terms&, const Terms&) = default;
};
Terms terms_of(const Slice&);
void set_terms(Slice&, const Terms&);

// Terms that held until a moment.
struct Period {
  Terms terms;
  Stamp to;

  friend bool operator==(const Period&, const Period&) = default;
};

struct UsageRecord {
  uint64_t id = 0;  // Never used twice.
  Slice slice;      // As it is now, or was at its end.
  Stamp from;
  std::optional<Stamp> to;  // None: still held.
  std::string end_reason;   // It ended.
  // What it was before, the oldest first: each period begins where the one before it ends, the first at
  // `from`; after the last of them comes `what`.
  std::vector<Period> periods;

  friend bool operator==(const UsageRecord&, const UsageRecord&) = default;
};

}  // namespace carve::ledger
