// All pools of the process, shared by the calls that allocate (stream_pool.cc) and those that make and
// describe pools (pool_calls.cc).
#pragma once

#include "sim/libcuda/stream_pool.h"

namespace carve::sim {

struct Pools {
  std::mutex mutex;
  std::unordered_set<CUmemoryPool> all;  // Includes destroyed pools until their last memory is freed.
  CUmemoryPool standard[max_devices] = {}, current[max_devices] = {};
  CUmemoryPool standard_host = nullptr, current_host = nullptr;
  uint32_t next_number = 0;
  // For each waiting stream, how far it has waited for each other stream through events.
  std::unordered_map<uint64_t, std::unordered_map<uint64_t, uint64_t>> waits;

  // The functions below require the mutex.
  bool known(CUmemoryPool pool) const { return all.contains(pool) && !pool->destroyed; }
  CUmemoryPool make(unsigned device, bool host);
  CUmemoryPool standard_of(unsigned device, bool host);
  CUmemoryPool current_of(unsigned device, bool host);
};
Pools& pools();

// Frees memory of a pool after a position in a stream, or immediately if LastUse is empty.
CUresult free_pooled(CUdeviceptr, const LastUse&);

// Releases unused chunks while the pool reserves more than `keep` bytes. Requires the mutex.
void trim(CUmemPoolHandle_st&, uint64_t keep);

}  // namespace carve::sim
