// Who ran when, in Chrome's trace event format, which ui.perfetto.dev and chrome://tracing open: one process
// per device, in it one track per slice, on it its leases, waits, drains and overruns; the changes from
// slice to slice have a track of their own. Times are microseconds since the trace begins. Pure.
// Source: "Trace Event Format" (Google, 2016), complete events "X" and metadata events "M".
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "node/arbiter/trace.h"

namespace carve::node {

struct TraceNames {
  struct Device {
    Uuid uuid;
    unsigned index;
    std::string name;
  };
  std::vector<Device> devices;
  std::map<uint64_t, std::string> slices;  // Those that may be seen; spans of others are left out.
};

// In any order. `begin_ns`: where time 0 lies; what began earlier is cut there.
std::string chrome_trace(std::span<const TraceSpan> spans, const TraceNames&, int64_t begin_ns);

}  // namespace carve::node
