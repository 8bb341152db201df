// Writes which slice ran when in Chrome's trace event format, which ui.perfetto.dev and chrome://tracing can
// open. Each device is a process, and each slice is a track with its leases, waits, drains and overruns.
// Switches between slices have their own track. Times are in microseconds since the start of the trace. A
// pure function. Source: "Trace Event Format" (Google, 2016), complete events "X" and metadata events "M".
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "node/agent/trace.h"

namespace carve::node {

struct TraceNames {
  struct Device {
    Uuid uuid;
    unsigned index;
    std::string name;
  };
  std::vector<Device> devices;
  std::map<uint64_t, std::string> slices;  // Slices that the caller may see; other spans are left out.
};

// Accepts spans in any order. Time 0 is `begin_ns`; a span that began earlier is cut there.
std::string chrome_trace(std::span<const TraceSpan> spans, const TraceNames&, int64_t begin_ns);

}  // namespace carve::node
