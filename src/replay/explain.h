// Where a request would go in a cluster that a trace has filled, or in a snapshot of a fleet, or why nowhere:
// the same sentences that production gives, from the same place/. A request is what a row of a trace would
// say, and memory of each device: "num_gpu=8,gpu_milli=1000,cpu_milli=88000,memory_mib=262144,gpu_spec=G2|G3,
// gpu_memory_mib=4096"; what is left out is num_gpu=1, gpu_milli=1000 (0 where gpu_memory_mib is given), no
// CPU, no memory, any model.
#pragma once

#include <string>

#include "replay/setup.h"
#include "replay/snapshot.h"

namespace carve::replay {

// models: those that there are.
Outcome<Pod> parse_request(std::string_view text, const std::vector<std::string_view>& models);
std::vector<std::string_view> models_of(const Cluster&);
std::vector<std::string_view> models_of(const Snapshot&);

// After arrivals of `percent` of the cluster's devices (at most 130), a few lines of text.
std::string explain(const Cluster&, const Trace&, Strategy, bool known, uint64_t seed, unsigned percent,
                    const Pod& request);
std::string explain(const Snapshot&, Strategy, const Pod& request);

// The moves that would leave so many more devices empty; nobody is moved. For people, or as JSON.
std::string consolidation_table(const Snapshot&, Strategy, unsigned devices);
std::string consolidation_json(const Snapshot&, Strategy, unsigned devices);

}  // namespace carve::replay
