// An executable graph: a copy of the graph from which it was made, as a flat list in an order in which the
// nodes can be submitted. Child graphs and the chosen bodies of conditional nodes are expanded in place. They
// are followed by an entry for the node itself, which waits for their ends.
//
// Its mutex is taken without holding the lock of the graphs, because a launch may wait for room in a full
// channel.
#pragma once

#include <mutex>
#include <unordered_map>

#include "sim/libcuda/graph.h"
#include "sim/libcuda/graph_calls.h"
#include "sim/libcuda/graph_memory.h"
#include "sim/libcuda/graph_order.h"

namespace carve::sim {

struct ExecNode {
  CUgraphNode_st* node = nullptr;  // Node in the image.
  unsigned first = 0;              // For a child or condition: the first entry of its expansion.
  std::vector<Step> steps;
  bool enabled = true;
};

// A launch spreads over the stream's channel and up to seven more.
inline constexpr unsigned max_lanes = 8;

}  // namespace carve::sim

struct CUgraphExec_st {
  unsigned long long flags = 0;
  std::shared_ptr<CUgraph_st> image;
  std::vector<carve::sim::ExecNode> nodes;
  carve::sim::Waits waits;
  std::vector<unsigned> lanes, ends;
  std::unordered_map<uint64_t, unsigned> by_source;  // From the program's node to the entry.
  bool holds_objects = false;
  carve::sim::GraphNeeds needs;
  bool claimed = false;  // This executable has claimed the memory of its nodes.

  std::mutex mutex;
  carve::sim::Place last;  // The end of its last launch; the next launch waits for it.

  CUgraphExec_st() = default;
  CUgraphExec_st(const CUgraphExec_st&) = delete;
  CUgraphExec_st& operator=(const CUgraphExec_st&) = delete;
  ~CUgraphExec_st();
};

namespace carve::sim {

// Flattens a graph; requires the lock. The error contains the node that caused it, if there is one.
struct LayoutError {
  CUresult code = CUDA_SUCCESS;
  CUgraphInstantiateResult reason = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  uint64_t source = 0;  // The id of the program's node.
};
LayoutError lay_out(const CUgraph_st&, CUgraphExec_st*);

// Returns the executable of a handle, or nullptr. Takes the lock.
std::shared_ptr<CUgraphExec_st> find_executable(CUgraphExec);

// Takes the memory that the graph needs for a launch in the stream.
CUresult upload(const std::shared_ptr<CUgraphExec_st>&, CUstream);

}  // namespace carve::sim
