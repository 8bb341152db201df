// The graph memory pool: one for each device and process, beside the pools that programs make (CUDA
// programming guide, "Graph Memory Nodes"). An allocation node has its address from the time it is made and
// memory from the time its graph is uploaded or launched. What the pool reserves are multiples of 32 MiB,
// counted for the process; they go back only when somebody trims.
//
// Only amounts are kept here, the bytes lie in each node's own range of addresses. Memory that a graph frees
// itself belongs to the stream in which it is launched: graphs of one stream never run together and share
// it. Memory that a graph leaves allocated is its node's own until the program frees it. What is not in use
// serves others before the device is asked for more.
#pragma once

#include <map>
#include <span>

#include "sim/libcuda/work.h"

namespace carve::sim {

// The memory of one allocation node; the node's graph and its executable share it. Changed under the pool's
// mutex alone.
struct GraphBlock {
  unsigned device = 0;  // Ordinal in the set, here and below.
  CUdeviceptr address = 0;
  uint64_t bytes = 0;
  enum { unused, live, freed } state = unused;
  bool held = false;          // Counted as used.
  bool instantiated = false;  // One executable at a time.
  Place last_use;             // If freed: behind this.

  GraphBlock() = default;
  GraphBlock(const GraphBlock&) = delete;
  GraphBlock& operator=(const GraphBlock&) = delete;
  ~GraphBlock();
};

// What an executable needs to be launched.
struct GraphNeeds {
  std::map<unsigned, uint64_t> temporary;            // By device: what it frees itself.
  std::vector<std::shared_ptr<GraphBlock>> lasting;  // What it leaves.
  std::vector<std::shared_ptr<GraphBlock>> blocks;   // All of its allocation nodes'.
  struct Free {
    unsigned node;
    CUdeviceptr address;
  };
  std::vector<Free> frees;  // Of what other graphs left.

  bool none() const { return blocks.empty() && frees.empty(); }
};

CUresult make_block(unsigned device, uint64_t bytes, std::shared_ptr<GraphBlock>*);

// Marks the blocks as those of an executable: CUDA_ERROR_NOT_SUPPORTED if there is another one.
CUresult claim_blocks(const GraphNeeds&);
void unclaim_blocks(const GraphNeeds&, const CUgraphExec_st*);

// Memory for an executable in a stream: CUDA_ERROR_OUT_OF_MEMORY when the device has no room for what the
// pool lacks. With `launch`, what it left before must have been freed (CUDA_ERROR_INVALID_VALUE) unless
// `frees_before`, and what it frees must be there.
CUresult graph_memory_take(const CUgraphExec_st*, const GraphNeeds&, const CUctx_st&, unsigned channel,
                           bool launch, bool frees_before);
// Tells that all is submitted: `done` says for each node where, `end` where the last of it ends.
void graph_memory_submitted(const GraphNeeds&, const CUctx_st&, unsigned channel, std::span<const Place> done,
                            const Place& end);

// Frees what a graph left, behind a place or, with an empty one, at once. CUDA_ERROR_INVALID_VALUE if
// nothing of a graph lives there.
CUresult graph_memory_free(CUdeviceptr, const Place&);
// Whether an allocation node has this address.
bool graph_memory_is(CUdeviceptr);

// What cuDeviceGetGraphMemAttribute tells; resetting sets a high-water mark to what is now.
struct GraphMemory {
  uint64_t used = 0, used_high = 0;
  uint64_t reserved = 0, reserved_high = 0;
};
GraphMemory graph_memory(unsigned device);
void graph_memory_reset(unsigned device, bool used_high, bool reserved_high);

// Gives back what no graph under way and nothing allocated uses.
void graph_memory_trim(unsigned device);

}  // namespace carve::sim
