// Stream capture: between Begin and End the work given to a stream becomes nodes of a graph (CUDA programming
// guide, "Creating a Graph Using Stream Capture"). Other streams join by waiting for an event that was
// recorded in the capture, and must have been joined back at its end. A call that would need the work's
// result, or that may wait for the device, is refused and spoils the capture.
//
// Calls that give work to a stream ask `capturing` after stream_of; calls that wait or allocate ask one of
// the refusals. All cost one load while nothing captures.
#pragma once

#include <atomic>

#include "sim/libcuda/graph.h"

namespace carve::sim {

struct Capture;

inline bool capturing(const CUstream_st& s) {
  return __atomic_load_n(&s.capture, __ATOMIC_ACQUIRE) != nullptr;
}

// Adds a node behind what the stream has captured.
CUresult capture(CUstream_st&, const std::shared_ptr<CUctx_st>&, Payload);

// Adds a node that the caller has in hand already made into parameters, and tells which it became.
CUresult capture(CUstream_st&, const std::shared_ptr<CUctx_st>&, CUgraphNodeParams*);

// For a call that waits for this stream: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED where it captures.
CUresult refuse_wait(CUstream_st&);
// The same for all streams of a context.
CUresult refuse_wait(CUctx_st&);
// For a call that may wait for anything, such as an allocation: what the thread's and the captures' modes
// say.
CUresult refuse_unsafe_call();
// For the legacy default stream: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT while a blocking stream captures. A call
// that only asks does no harm.
CUresult refuse_implicit(CUctx_st&, bool only_asks);

// cuEventRecord and cuStreamWaitEvent of streams and events that capture.
CUresult capture_record(CUstream_st&, const std::shared_ptr<CUctx_st>&, CUevent, bool external);
bool concerns_capture(const CUstream_st&, CUevent);
CUresult capture_wait(CUstream_st&, const std::shared_ptr<CUctx_st>&, CUevent, bool external);

// The stream is about to go.
void forget_in_capture(CUstream_st&);

}  // namespace carve::sim
