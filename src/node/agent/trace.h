// The arbiter's record of which slice ran when, for display. Contains only values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/device.h"

namespace carve::node {

// The kind of a slice's span on a device. Only `overrun` overlaps with other slices' leases.
enum class SpanKind : uint8_t {
  lease = 0,      // The slice had the lease.
  drain = 1,      // Its lease had ended but its work had not.
  wait = 2,       // It had work but no lease.
  overrun = 3,    // The drain reached its time limit; other slices ran at the same time.
  switching = 4,  // The device switched to it.
};
inline constexpr std::string_view span_words[] = {"lease", "drain", "wait", "overrun", "switch"};

struct TraceSpan {
  Uuid device;
  uint64_t slice = 0;  // The ledger's id.
  SpanKind kind = SpanKind::lease;
  int64_t begin_ns = 0;  // CLOCK_MONOTONIC, like end_ns.
  int64_t end_ns = 0;

  friend bool operator==(const TraceSpan&, const TraceSpan&) = default;
};

inline constexpr unsigned max_trace_seconds = 60;

}  // namespace carve::node
