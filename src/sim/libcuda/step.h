// A step is one execution of an item of a stream or of a graph node: one operation for the model, and its
// effect on this process's memory. Calls prepare steps. A stream submits them immediately; a graph keeps
// their inputs, and creates and submits them at each launch.
//
// The model orders the operations of one channel. An operation can also wait for up to three operations in
// other channels of its context. `submit_after` accepts any set of operations: it joins more than three with
// marks, and waits for those in other contexts with gates, which the service thread opens.
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

// Submits to a channel, after all operations in `places`. `out` may be null.
CUresult submit_after(const std::shared_ptr<CUctx_st>&, unsigned channel, std::span<const Place>, Step,
                      Place* out);

// Returns whether the operation is done. Also true for an empty Place and for a context that no longer
// exists.
bool is_over(const Place&);

// Submits a copy in a stream. If `wait` is set, waits until it is done.
CUresult move(const CUDA_MEMCPY3D&, CUstream, bool wait);

// Creates steps for copies and sets. Fails with CUDA_ERROR_INVALID_VALUE for ranges that leave their
// allocation.
CUresult copy_step(CUctx_st&, const CUDA_MEMCPY3D&, Step*);
CUresult set_step(CUctx_st&, const CUDA_MEMSET_NODE_PARAMS&, Step*);

// Returns CUDA_ERROR_INVALID_VALUE if the handle is not an event.
CUresult known_event(CUevent);
// Records an event after the operations in `places`.
CUresult submit_record(CUevent, const std::shared_ptr<CUctx_st>&, unsigned channel, std::span<const Place>,
                       Place* out);
// Returns where the event was last recorded. The place has no context if there is nothing to wait for.
CUresult recorded_place(CUevent, Place*);

// Creates one step for each stream memory operation. Fails with CUDA_ERROR_INVALID_VALUE for an address that
// is neither on the device nor registered or is not aligned, and with CUDA_ERROR_NOT_SUPPORTED for flushes of
// remote writes, which no simulated device has.
CUresult memory_operations(std::span<const CUstreamBatchMemOpParams>, std::vector<Step>*);

}  // namespace carve::sim
