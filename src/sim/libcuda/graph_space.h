// How much memory the nodes of a graph need at the same time. Memory that one node frees serves a later
// allocation only if the order of the graph puts the free before it, since unordered nodes may run at the
// same time. Takes time proportional to allocations times nodes and edges. Pure.
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
