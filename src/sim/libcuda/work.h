// A step is what a stream or a node of a graph does once: one operation for the model, and its effect on this
// process's memory. Calls prepare steps; a stream submits them at once, a graph keeps what they are made from
// and submits them at each launch.
//
// The model orders the operations of one channel, and lets one wait for up to three places in other channels
// of its context. `submit_after` turns any set of places into that: further ones are joined by marks, those
// in other contexts by gates, which the service thread opens.
#pragma once

#include <span>
#include <vector>

#include "sim/libcuda/schedule.h"

namespace carve::sim {

struct Step {
  Op op = {};
  Effect effect;
};

// A submitted operation.
struct Place {
  std::shared_ptr<CUctx_st> context;
  unsigned channel = 0;
  uint64_t sequence = 0;
};

// Submits to a channel, behind all places. `out` may be null.
CUresult submit_after(const std::shared_ptr<CUctx_st>&, unsigned channel, std::span<const Place>, Step,
                      Place* out);

// Whether what was submitted there is done; so it is in a context that is gone, and so is an empty place.
bool is_over(const Place&);

// A copy in a stream; `wait`: until it is done.
CUresult move(const CUDA_MEMCPY3D&, CUstream, bool wait);

// Copies and sets as steps: CUDA_ERROR_INVALID_VALUE for ranges that leave their allocation.
CUresult copy_step(CUctx_st&, const CUDA_MEMCPY3D&, Step*);
CUresult set_step(CUctx_st&, const CUDA_MEMSET_NODE_PARAMS&, Step*);

// CUDA_ERROR_INVALID_VALUE for what is no event.
CUresult known_event(CUevent);
// Records an event behind the places.
CUresult submit_record(CUevent, const std::shared_ptr<CUctx_st>&, unsigned channel, std::span<const Place>,
                       Place* out);
// Where the event was recorded last; a place without a context where there is nothing to wait for.
CUresult recorded_place(CUevent, Place*);

// The steps of stream memory operations, one for each: CUDA_ERROR_INVALID_VALUE for an address that is
// neither on the device nor registered or is not aligned, CUDA_ERROR_NOT_SUPPORTED for flushes of remote
// writes, which no simulated device has.
CUresult memory_operations(std::span<const CUstreamBatchMemOpParams>, std::vector<Step>*);

}  // namespace carve::sim
