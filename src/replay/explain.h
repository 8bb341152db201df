// Where a request would go in a cluster that a trace has filled, or why nowhere: the same sentences that
// production gives, from the same place/. A request is what a row of a trace would say:
// "num_gpu=8,gpu_milli=1000,cpu_milli=88000,memory_mib=262144,gpu_spec=G2|G3"; what is left out is num_gpu=1,
// gpu_milli=1000, no CPU, no memory, any model.
#pragma once

#include <string>

#include "replay/setup.h"

namespace carve::replay {

Outcome<Pod> parse_request(std::string_view text, const Cluster&);

// After arrivals of `percent` of the cluster's cards (at most 130), a few lines of text.
std::string explain(const Cluster&, const Trace&, Strategy, bool known, uint64_t seed, unsigned percent,
                    const Pod& request);

}  // namespace carve::replay
