// Between this process and the model: submitting operations, waiting for them, and performing their effects
// on the process's memory when model time says that they are done.
//
// A waiter sleeps until the earliest time at which its operation can end, looks, and sleeps again if others
// came between. Effects are performed in the order in which their operations ended, by whoever sees it first:
// a waiter, or the service thread, which exists from the first asynchronous effect on and wakes at model
// time.
#pragma once

#include "sim/libcuda/process.h"

namespace carve::sim {

// The stream that a handle means for the calling thread: nullptr and CU_STREAM_LEGACY are channel 0,
// CU_STREAM_PER_THREAD is the thread's own. Keeps the context alive through *context. While a blocking stream
// captures, the legacy stream cannot be used (CUDA_ERROR_STREAM_CAPTURE_IMPLICIT), and the try spoils the
// capture unless the caller only asks.
CUresult stream_of(CUstream handle, std::shared_ptr<CUctx_st>* context, CUstream_st** stream,
                   bool only_asks = false);
// What a null handle means to the _ptds and _ptsz twins.
inline CUstream per_thread(CUstream s) { return s ? s : CU_STREAM_PER_THREAD; }

// Submits and, where the ring is full, waits for room as a full launch queue does. `sequence` may be null.
CUresult submit(CUctx_st&, unsigned channel, const Op&, Effect, uint64_t* sequence);
CUresult submit(CUctx_st&, unsigned channel, const Op&, uint64_t* sequence);

// Waits until the operation is done and its effects, and all before it, are performed.
CUresult wait_for(CUctx_st&, unsigned channel, uint64_t sequence);
CUresult wait_channel(CUctx_st&, unsigned channel);
CUresult wait_idle(CUctx_st&);
// Whether something submitted would never end (a fault that was ordered).
bool hangs(CUctx_st&);

// CUDA_SUCCESS or CUDA_ERROR_NOT_READY.
CUresult query_channel(CUctx_st&, unsigned channel);
CUresult query(CUctx_st&, unsigned channel, uint64_t sequence);

// The next free channel for a new stream; shared with others once all are taken.
struct Partition {  // Multiprocessors of a green context; none: all.
  uint16_t first = 0, size = 0;
};
unsigned take_channel(CUctx_st&, bool blocking, Partition = {});
void give_channel(CUctx_st&, unsigned channel);

// Lets the service thread look at once: something that a gate may wait for has happened.
void call_service();

uint64_t copy_time(const Device&, OpKind, uint64_t bytes);

}  // namespace carve::sim
