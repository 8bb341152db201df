// Memory pools of this process: stream-ordered allocation. An allocation has its address at once and is good
// for work that comes after it in its stream; a free takes effect after the work that came before it. What
// the device is asked for are the pool's chunks (sim/model/pool.h); they are counted for the process, not for
// a context, since a pool outlives them.
//
// With a release threshold of 0, the default, every synchronisation gives back what is unused by then.
#pragma once

#include <map>

#include "sim/libcuda/process.h"
#include "sim/libcuda/shared.h"
#include "sim/model/pool.h"

namespace carve::sim {

// Names a pool among those of all processes.
struct PoolName {
  uint32_t client;
  uint32_t number;
  uint64_t generation;
  bool operator==(const PoolName&) const = default;
};

}  // namespace carve::sim

struct CUmemPoolHandle_st {
  unsigned device = 0;    // Ordinal in the set.
  bool host = false;      // Memory of the host: takes nothing of the device.
  bool standard = false;  // A device's default pool: never destroyed.
  bool destroyed = false;
  uint64_t most = 0;  // CUmemPoolProps::maxSize; 0: as much as there is.
  CUmemAllocationHandleType handle_types = CU_MEM_HANDLE_TYPE_NONE;
  carve::sim::PoolBook book;
  uint64_t threshold = 0;
  int follow_events = 1, opportunistic = 1, internal_dependencies = 1;
  carve::sim::PoolName name = {};
  std::map<uint64_t, std::shared_ptr<carve::sim::Shared>> segments;  // Of an exportable pool: chunk by chunk.
  bool imported = false;                                             // Another process's pool.
  std::map<CUdeviceptr, uint64_t> pointers;      // What was imported from it, and where its chunk is.
  std::map<unsigned, CUmemAccess_flags> access;  // Of other devices than its own.
};

namespace carve::sim {

// Called at the end of every call that waited for a stream, an event or a context of the device.
void release_unused(unsigned device);

// The stream's later work comes after the recording: memory freed before that may be used again in it.
void note_wait(CUctx_st&, unsigned channel, const Recording&);

}  // namespace carve::sim
