// Computes how much memory the nodes of a graph need at the same time. A later allocation can reuse memory
// that a node frees only if the graph orders the free before the allocation, because unordered nodes may run
// at the same time. Takes time proportional to allocations times (nodes + edges). The functions are pure.
#pragma once

#include <cstdint>

#include "sim/libcuda/graph_order.h"

namespace carve::sim {

// Memory between two nodes of an ordered graph.
struct NodeSpan {
  unsigned alloc, free;
  uint64_t bytes;
};

// Returns the total size of the blocks that the spans need. Spans are placed in the order of their
// allocations. A span reuses the smallest freed block that is large enough; otherwise it gets a new block,
// whose size is rounded up to a multiple of `step`.
uint64_t space_of(const Waits&, std::vector<NodeSpan>, uint64_t step);

}  // namespace carve::sim
