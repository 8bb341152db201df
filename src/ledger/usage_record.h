// Usage records: which slice held how much, from when to when, and why it ended. Invoices are computed from
// them.
//
// A time has three numbers, because no single clock is right. Users and invoices use UTC, and UTC can be
// stepped. The monotonic clock is never stepped, but restarts with each boot. Within one boot a duration is
// the difference of the monotonic clocks; across boots it is the difference of UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/slice.h"

namespace carve::ledger {

struct Stamp {
  int64_t utc_ns = 0;   // Nanoseconds since 1970.
  std::string boot_id;  // /proc/sys/kernel/random/boot_id
  int64_t monotonic_ns = 0;

  friend bool operator==(const Stamp&, const Stamp&) = default;
};

// Returns the duration in nanoseconds, at least 0.
int64_t duration_ns(const Stamp& from, const Stamp& to);

// The terms that can change while a slice lives. Memory and share apply to each of its devices. If the parts
// differ, the terms are those of the first part, and set_terms() leaves an unchanged amount as it is on each
// part.
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

// Terms, with the time until which they held.
struct Period {
  Terms terms;
  Stamp to;

  friend bool operator==(const Period&, const Period&) = default;
};

// A slice's usage so far. It is not billed.
struct UsedAmounts {
  uint64_t busy_ns = 0;
  uint64_t peak_bytes = 0;
};

struct UsageRecord {
  uint64_t id = 0;  // Unique; an id is never reused.
  Slice slice;      // The slice as it is now or was at its end.
  Stamp from;
  std::optional<Stamp> to;  // End of the record; no value while the slice lives.
  std::string end_reason;   // Why the slice ended; empty while it lives.
  uint64_t busy_ns = 0;     // Time charged to it on all its devices, as of the last Alive change or its end.
  uint64_t peak_bytes =
      0;  // The most bytes that were charged to it on one of its devices, as of the same time.
  // Earlier terms, oldest first. Each period begins at the end of the one before it, the first at `from`; the
  // current terms are in `slice`.
  std::vector<Period> periods;

  friend bool operator==(const UsageRecord&, const UsageRecord&) = default;
};

// A page of a list of usage records, as in the agent's API.
struct UsagePage {
  std::vector<UsageRecord> records;
  uint64_t last = 0;  // The id after which to continue. If it does not change, there are no more records.
  std::string query =
      {};  // The query of the request, so that a reader notices a response to another request.
};

}  // namespace carve::ledger
