// Green contexts: a part of a device's multiprocessors, with its own streams, inside the device's primary
// context, whose memory, modules and overhead it shares (CUDA driver API, "Green Contexts"). The model grants
// the kernels of its streams no more than that part. Parts overlap if the program creates them so, and the
// primary context's own streams may use all multiprocessors.
//
// cuCtxFromGreenCtx returns a handle that behaves like the primary context, with one exception: default
// streams and new streams of a thread in which the handle is current are the green context's.
#pragma once

#include "sim/libcuda/driver_state.h"
#include "sim/libcuda/schedule.h"

struct CUgreenCtx_st {
  unsigned device = 0;
  carve::sim::Partition part;
  unsigned long long id = 0;
  std::shared_ptr<CUctx_st> primary;
  CUctx_st face;
  CUstream_st default_stream = {};
  std::unordered_map<uint64_t, std::unique_ptr<CUstream_st>> thread_streams;
};

namespace carve::sim {

// Returns the green context of the calling thread's current context, or nullptr.
CUgreenCtx current_green();
// Returns the context that contains a live green context, or nullptr.
std::shared_ptr<CUctx_st> primary_of(CUgreenCtx);

// A division into equal groups. `size` is `wanted` rounded to what the architecture can separate (the same
// page of the documentation), `groups` is the number of groups, or 0 if none fits.
struct SmSplit {
  unsigned size, groups;
};
SmSplit split_multiprocessors(unsigned cc_major, unsigned all, unsigned wanted, bool each_alone);

}  // namespace carve::sim
