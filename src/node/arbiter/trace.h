// Who ran when: what the arbiter remembers of its decisions, for people who want to look. Values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/device.h"

namespace carve::node {

// What a stretch of time was, for one slice on one device. Only `overrun` overlaps others' leases.
enum class SpanKind : uint8_t {
  lease = 0,      // It might launch.
  drain = 1,      // Its lease was over and its work was not.
  wait = 2,       // It had work and no lease.
  overrun = 3,    // The drain took too long: others ran beside it.
  switching = 4,  // The device changed over to it.
};
inline constexpr std::string_view span_words[] = {"lease", "drain", "wait", "overrun", "switch"};

struct TraceSpan {
  Uuid device;
  uint64_t slice = 0;  // The ledger's id.
  SpanKind kind = SpanKind::lease;
  int64_t begin_ns = 0;  // CLOCK_MONOTONIC.
  int64_t end_ns = 0;

  friend bool operator==(const TraceSpan&, const TraceSpan&) = default;
};

inline constexpr unsigned max_trace_seconds = 60;

}  // namespace carve::node
