// See graph_memory.h. Only amounts: the bytes lie in the node's own range of addresses.
#include "sim/libcuda/graph_memory.h"

#include <algorithm>

#include "sim/libcuda/heap.h"
#include "sim/libcuda/holding.h"
#include "sim/model/pool.h"

namespace carve::sim {
namespace {

struct GraphPools {
  std::mutex mutex;
  GraphMemory of[kDevices];
};
GraphPools& graph_pools() {
  static auto* all = new GraphPools;
  return *all;
}

constexpr uint64_t rounded(uint64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

}  // namespace

CUresult graph_memory_address(unsigned device, uint64_t bytes, CUdeviceptr* out) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t base = bytes > 1ull << 46 ? 0 : heap_take_range(rounded(bytes));
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  heap_record({.base = base, .bytes = bytes, .device = device, .kind = Memory::graph});
  *out = base;
  return CUDA_SUCCESS;
}

void graph_memory_forget(CUdeviceptr pointer) {
  Allocation a;
  if (heap_strike(pointer, Memory::graph, &a)) heap_give_range(a.base, rounded(a.bytes));
}

CUresult graph_memory_take(unsigned device, uint64_t bytes) {
  const std::lock_guard lock(graph_pools().mutex);
  GraphMemory& g = graph_pools().of[device];
  if (g.used + bytes > g.reserved) {
    const uint64_t more = PoolBook::chunk_for(g.used + bytes - g.reserved);
    if (const CUresult e = take_bytes(device, more)) return e;
    g.reserved += more;
    g.reserved_high = std::max(g.reserved_high, g.reserved);
  }
  g.used += bytes;
  g.used_high = std::max(g.used_high, g.used);
  return CUDA_SUCCESS;
}

void graph_memory_give(unsigned device, uint64_t bytes) {
  const std::lock_guard lock(graph_pools().mutex);
  GraphMemory& g = graph_pools().of[device];
  g.used -= std::min(bytes, g.used);
}

GraphMemory graph_memory(unsigned device) {
  const std::lock_guard lock(graph_pools().mutex);
  return graph_pools().of[device];
}

void graph_memory_reset(unsigned device, bool used_high, bool reserved_high) {
  const std::lock_guard lock(graph_pools().mutex);
  GraphMemory& g = graph_pools().of[device];
  if (used_high) g.used_high = g.used;
  if (reserved_high) g.reserved_high = g.reserved;
}

void graph_memory_trim(unsigned device) {
  const std::lock_guard lock(graph_pools().mutex);
  GraphMemory& g = graph_pools().of[device];
  const uint64_t keep = PoolBook::chunk_for(g.used);
  if (keep >= g.reserved) return;
  give_bytes(device, g.reserved - keep);
  g.reserved = keep;
}

}  // namespace carve::sim
