// Stream capture: between Begin and End the work submitted to a stream becomes nodes of a graph (CUDA
// programming guide, "Creating a Graph Using Stream Capture"). Other streams join when they wait for an event
// that was recorded in the capture, and must be joined back before its end. A call that needs the work's
// result or may wait for the device is rejected and invalidates the capture.
//
// Calls that submit work to a stream check `capturing` after stream_of; calls that wait or allocate check one
// of the refusals. Each check takes one load while no stream captures.
#pragma once

#include <atomic>

#include "sim/libcuda/graph.h"

namespace carve::sim {

struct Capture;

inline bool capturing(const CUstream_st& s) {
  return __atomic_load_n(&s.capture, __ATOMIC_ACQUIRE) != nullptr;
}

// Adds a node after the captured work of the stream.
CUresult capture(CUstream_st&, const std::shared_ptr<CUctx_st>&, Payload);

// Adds a node with these parameters, and writes the parameters of the finished node back.
CUresult capture(CUstream_st&, const std::shared_ptr<CUctx_st>&, CUgraphNodeParams*);

// For a call that waits for this stream. Returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the stream
// captures.
CUresult refuse_wait(CUstream_st&);
// For a call that waits for all streams of a context. Returns the same error if one of them captures.
CUresult refuse_wait(CUctx_st&);
// For a call that may wait for any work, such as an allocation. The result depends on the capture modes of
// the thread and of the captures.
CUresult refuse_unsafe_call();
// For a call that uses the legacy default stream. Returns CUDA_ERROR_STREAM_CAPTURE_IMPLICIT while a blocking
// stream captures. With `only_asks`, which is set for queries, the capture stays valid.
CUresult refuse_implicit(CUctx_st&, bool only_asks);

// cuEventRecord and cuStreamWaitEvent for streams that capture and for captured events.
CUresult capture_record(CUstream_st&, const std::shared_ptr<CUctx_st>&, CUevent, bool external);
bool concerns_capture(const CUstream_st&, CUevent);
CUresult capture_wait(CUstream_st&, const std::shared_ptr<CUctx_st>&, CUevent, bool external);

// Removes the stream from its capture before it is destroyed.
void forget_in_capture(CUstream_st&);

}  // namespace carve::sim
