// Explains where a request would be placed in a cluster that a trace has filled, or in a snapshot of a fleet,
// or why it fits nowhere. The messages come from the same code (place/) as in production. A request has the
// fields of a row of a trace, and the memory on each device:
// "num_gpu=8,gpu_milli=1000,cpu_milli=88000,memory_mib=262144, gpu_spec=G2|G3,gpu_memory_mib=4096". The
// defaults are num_gpu=1, gpu_milli=1000 (0 if gpu_memory_mib is given), no CPU, no memory, any model.
#pragma once

#include <string>

#include "replay/setup.h"
#include "replay/snapshot.h"

namespace carve::replay {

// Parses a request. `models` are the known models.
Outcome<Pod> parse_request(std::string_view text, const std::vector<std::string_view>& models);
std::vector<std::string_view> models_of(const Cluster&);
std::vector<std::string_view> models_of(const Snapshot&);

struct Explanation {
  std::string text;  // A few lines.
  bool fits = false;
};

// Explains the request in the cluster after arrivals of `percent` of its devices (at most 130).
Explanation explain(const Cluster&, const Trace&, Strategy, bool known, uint64_t seed, unsigned percent,
                    const Pod& request);
Explanation explain(const Snapshot&, Strategy, const Pod& request);

// Returns the moves that would leave this many more devices empty, as a table or as JSON. No slice is moved.
std::string consolidation_table(const Snapshot&, Strategy, unsigned devices);
std::string consolidation_json(const Snapshot&, Strategy, unsigned devices);

}  // namespace carve::replay
