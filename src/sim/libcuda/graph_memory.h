// The graph memory pool: one for each device and process, beside the pools that programs make. The memory
// nodes of graphs have addresses from the time they are made and memory from the time a graph is uploaded or
// launched. What the pool reserves are multiples of 32 MiB, counted for the process; they go back only when
// somebody trims.
#pragma once

#include "sim/libcuda/process.h"

namespace carve::sim {

struct GraphMemory {
  uint64_t used = 0, used_high = 0;
  uint64_t reserved = 0, reserved_high = 0;
};

// An address for the memory of a node, known to copies and cuPointerGetAttribute from now on. The range is
// the node's until it is forgotten. `device` is the ordinal in the set, here and below.
CUresult graph_memory_address(unsigned device, uint64_t bytes, CUdeviceptr* out);
void graph_memory_forget(CUdeviceptr);

// Bytes of the pool for a graph that is uploaded or launched: CUDA_ERROR_OUT_OF_MEMORY when the card has no
// room for what the pool lacks. Giving lowers `used` alone.
CUresult graph_memory_take(unsigned device, uint64_t bytes);
void graph_memory_give(unsigned device, uint64_t bytes);

// What cuDeviceGetGraphMemAttribute tells; resetting sets a high-water mark to what is now.
GraphMemory graph_memory(unsigned device);
void graph_memory_reset(unsigned device, bool used_high, bool reserved_high);

// Gives back what is reserved and not used.
void graph_memory_trim(unsigned device);

}  // namespace carve::sim
