// Usage records: what a slice held, from when to when, and why it ended. An invoice is a sum over them.
//
// A moment has three values, because no single clock is enough. Invoices need UTC, and UTC can be stepped.
// The monotonic clock is never stepped and starts again at each boot. Within one boot a duration is the
// difference of the monotonic clock, whatever happened to UTC. Across boots it is the difference of UTC.
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

// What can change while a slice lives. Memory and share are those of each of its devices.
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

// Terms that held until `to`.
struct Period {
  Terms terms;
  Stamp to;

  friend bool operator==(const Period&, const Period&) = default;
};

struct UsageRecord {
  uint64_t id = 0;  // Never used twice.
  Slice slice;      // As it is now, or was when it ended.
  Stamp from;
  std::optional<Stamp> to;  // None while the slice lives.
  std::string end_reason;   // A sentence; empty while the slice lives.
  // Earlier terms, the oldest first. Each period begins at the end of the one before it, the first at `from`.
  // The terms of `slice` hold after the last one.
  std::vector<Period> periods;

  friend bool operator==(const UsageRecord&, const UsageRecord&) = default;
};

}  // namespace carve::ledger
