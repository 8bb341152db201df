// The graph memory pool: one for each device and process, in addition to the pools that programs make (CUDA
// programming guide, "Graph Memory Nodes"). An allocation node gets its address when it is created, and
// memory when its graph is uploaded or launched. The pool reserves multiples of 32 MiB, counted for the
// process; only a trim releases them.
//
// The pool only counts bytes; the contents are in each node's own range of addresses. Memory that a graph
// frees itself belongs to the stream in which it is launched: graphs of one stream never run together and
// share it. Memory that a graph leaves allocated belongs to its node until the program frees it. Unused
// memory is given to other graphs before more is taken from the device.
#pragma once

#include <map>
#include <span>

#include "sim/libcuda/step.h"

namespace carve::sim {

// The memory of one allocation node, shared by the node's graph and its executable. Changed only under the
// pool's mutex.
struct GraphBlock {
  unsigned device = 0;  // Ordinal in the set, here and below.
  CUdeviceptr address = 0;
  uint64_t bytes = 0;
  enum { unused, live, freed } state = unused;
  bool held = false;          // Counted as used.
  bool instantiated = false;  // Belongs to an executable; only one at a time may have it.
  Place last_use;             // For a freed block: the operation after which it is free.

  GraphBlock() = default;
  GraphBlock(const GraphBlock&) = delete;
  GraphBlock& operator=(const GraphBlock&) = delete;
  ~GraphBlock();
};

// The memory that an executable needs for a launch.
struct GraphNeeds {
  std::map<unsigned, uint64_t> temporary;            // By device, memory that the graph frees itself.
  std::vector<std::shared_ptr<GraphBlock>> lasting;  // Memory that the graph leaves allocated.
  std::vector<std::shared_ptr<GraphBlock>> blocks;   // Blocks of all its allocation nodes.
  struct Free {
    unsigned node;
    CUdeviceptr address;
  };
  std::vector<Free> frees;  // Frees of memory that other graphs left allocated.

  bool none() const { return blocks.empty() && frees.empty(); }
};

CUresult make_block(unsigned device, uint64_t bytes, std::shared_ptr<GraphBlock>*);

// Marks the blocks as those of an executable. Fails with CUDA_ERROR_NOT_SUPPORTED if there is another one.
CUresult claim_blocks(const GraphNeeds&);
void unclaim_blocks(const GraphNeeds&, const CUgraphExec_st*);

// Takes memory for an executable in a stream. Fails with CUDA_ERROR_OUT_OF_MEMORY if the pool must grow and
// the device has no room. With `launch`, fails with CUDA_ERROR_INVALID_VALUE if memory that an earlier launch
// left allocated has not been freed (unless `frees_before`), or if memory that the graph frees is not
// allocated.
CUresult graph_memory_take(const CUgraphExec_st*, const GraphNeeds&, const CUctx_st&, unsigned channel,
                           bool launch, bool frees_before);
// Records that all nodes have been submitted. `done` has the operation of each node, `end` that of the last.
void graph_memory_submitted(const GraphNeeds&, const CUctx_st&, unsigned channel, std::span<const Place> done,
                            const Place& end);

// Frees memory that a graph left allocated, after the given operation, or immediately if there is none. Fails
// with CUDA_ERROR_INVALID_VALUE if no memory of a graph is at that address.
CUresult graph_memory_free(CUdeviceptr, const Place&);
// Returns whether an allocation node has this address.
bool graph_memory_is(CUdeviceptr);

// The values of cuDeviceGetGraphMemAttribute. A reset sets a high-water mark to the current value.
struct GraphMemory {
  uint64_t used = 0, used_high = 0;
  uint64_t reserved = 0, reserved_high = 0;
};
GraphMemory graph_memory(unsigned device);
void graph_memory_reset(unsigned device, bool used_high, bool reserved_high);

// Releases the memory that no running graph or allocation uses.
void graph_memory_trim(unsigned device);

}  // namespace carve::sim
