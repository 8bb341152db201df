// Memory pools of this process: stream-ordered allocation. An allocation returns its address immediately and
// is valid for later work in its stream. A free takes effect after the earlier work. The pool takes chunks
// from the device (sim/model/pool_chunks.h). Chunks are counted for the process and not for a context,
// because a pool outlives contexts.
//
// With a release threshold of 0, the default, every synchronisation releases the memory that is unused at
// that time.
#pragma once

#include <map>

#include "sim/libcuda/driver_state.h"
#include "sim/libcuda/shared.h"
#include "sim/model/pool_chunks.h"

namespace carve::sim {

// Identifies a pool among those of all processes.
struct PoolName {
  uint32_t client;
  uint32_t number;
  uint64_t generation;
  bool operator==(const PoolName&) const = default;
};

}  // namespace carve::sim

struct CUmemPoolHandle_st {
  unsigned device = 0;    // Ordinal in the set.
  bool host = false;      // Host memory: takes no device memory.
  bool standard = false;  // A device's default pool, which is never destroyed.
  bool destroyed = false;
  uint64_t most = 0;  // CUmemPoolProps::maxSize; 0 means no limit.
  CUmemAllocationHandleType handle_types = CU_MEM_HANDLE_TYPE_NONE;
  carve::sim::PoolBook book;
  uint64_t threshold = 0;
  int follow_events = 1, opportunistic = 1, internal_dependencies = 1;
  carve::sim::PoolName name = {};
  std::map<uint64_t, std::shared_ptr<carve::sim::Shared>>
      segments;                                  // One segment per chunk, for an exportable pool.
  bool imported = false;                         // A pool of another process.
  std::map<CUdeviceptr, uint64_t> pointers;      // Pointers imported from it, with the base of their chunk.
  std::map<unsigned, CUmemAccess_flags> access;  // Access of devices other than its own.
};

namespace carve::sim {

// Called at the end of every call that waited for a stream, an event or a context of the device.
void release_unused(unsigned device);

// Records that the stream's later work comes after the recording, so memory that was freed before the
// recording may be reused in that stream.
void note_wait(CUctx_st&, unsigned channel, const Recording&);

}  // namespace carve::sim
