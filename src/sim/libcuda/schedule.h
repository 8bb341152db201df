// Connects this process to the model: submits operations, waits for them, and performs their effects on the
// process's memory at the model time when they are done.
//
// A waiter sleeps until the earliest time at which its operation can end, polls, and sleeps again if other
// operations came before it. Effects are performed in the order in which their operations ended, by the first
// thread that notices the end: a waiter or the service thread. The service thread is started at the first
// asynchronous effect and wakes up according to model time.
#pragma once

#include "sim/libcuda/driver_state.h"

namespace carve::sim {

// Returns the stream that a handle denotes for the calling thread: nullptr and CU_STREAM_LEGACY are channel
// 0, CU_STREAM_PER_THREAD is the thread's own. Keeps the context alive through *context. While a blocking
// stream captures, the legacy stream cannot be used (CUDA_ERROR_STREAM_CAPTURE_IMPLICIT); the attempt
// invalidates the capture unless the caller only queries.
CUresult stream_of(CUstream handle, std::shared_ptr<CUctx_st>* context, CUstream_st** stream,
                   bool only_asks = false);
// Returns the stream that a null handle denotes in the _ptds and _ptsz variants.
inline CUstream per_thread(CUstream s) { return s ? s : CU_STREAM_PER_THREAD; }

// The default streams of entry points without a stream argument: the first for the plain names, the second
// for the names in _ptds.
inline constexpr CUstream legacy_stream = nullptr;
inline CUstream per_thread_default() { return CU_STREAM_PER_THREAD; }

// Submits an operation. If the ring is full, waits for a free entry as a full launch queue does. `sequence`
// may be null.
CUresult submit(CUctx_st&, unsigned channel, const Op&, Effect, uint64_t* sequence);
CUresult submit(CUctx_st&, unsigned channel, const Op&, uint64_t* sequence);

// Waits until the operation is done and its effects and all earlier effects have been performed.
CUresult wait_for(CUctx_st&, unsigned channel, uint64_t sequence);
CUresult wait_channel(CUctx_st&, unsigned channel);
CUresult wait_idle(CUctx_st&);
// Returns whether a submitted operation would never end because of an injected fault.
bool hangs(CUctx_st&);

// Returns CUDA_SUCCESS or CUDA_ERROR_NOT_READY.
CUresult query_channel(CUctx_st&, unsigned channel);
CUresult query(CUctx_st&, unsigned channel, uint64_t sequence);

// Returns the next free channel for a new stream; streams share channels once all are taken.
struct Partition {  // Multiprocessors of a green context; size 0 means all.
  uint16_t first = 0, size = 0;
};
unsigned take_channel(CUctx_st&, bool blocking, Partition = {});
void give_channel(CUctx_st&, unsigned channel);

// Makes the service thread poll immediately, because a gate's condition may have changed.
void call_service();

uint64_t copy_time(const Device&, OpKind, uint64_t bytes);

}  // namespace carve::sim
