// Fences, with which the device itself reports its progress. A cuStreamWriteValue64 after launched work
// writes a number into a registered page, which the agent reads (wire/shm/work.h, StreamWork). A fence covers
// a batch of estimated work. The launch that begins the next batch inserts the fence, or the thread inserts
// it before it waits for the device. So most launches remain a plain jump. No fence is inserted into a stream
// that is being captured. If the device cannot write to host memory, an event without timing replaces the
// value, with one such event per stream at a time. The process then queries the event when it polls.
//
// The legacy default stream waits for the other streams of its context, and they wait for it and for a fence
// in it. So it gets a fence only if the program has just launched there, or if the thread has nothing in
// flight in other streams.
#pragma once

#include "guest/launch/this_thread.h"

namespace carve::guest {

// Identifies a stream in a launch by its handle. In the per-thread variants of the entry points, 0 is a
// different default stream (cuda.h, CU_STREAM_PER_THREAD).
inline constexpr uint64_t legacy_stream = 0, per_thread_stream = 2;
inline uint64_t named(CUstream stream, bool per_thread = false) {
  const auto handle = reinterpret_cast<uint64_t>(stream);
  if (handle == 1) return legacy_stream;
  return handle == 0 && per_thread ? per_thread_stream : handle;
}
inline CUstream handle_of(uint64_t stream) { return reinterpret_cast<CUstream>(stream); }
inline StreamEntry& stream_entry_at(ThreadLaunchState& l, uint64_t stream) {
  return l.stream[stream * 0x9e37'79b9'7f4a'7c15 >> (64 - stream_entry_bits)];
}

// Returns whether work put on the stream now becomes part of a graph. Returns true if the driver cannot tell.
bool captured(uint64_t stream);

// Returns the thread's entry for the stream in its current context. The previous user of the entry gets a
// fence first.
StreamEntry& stream_entry_of(Process& p, ThreadLaunchState& l, uint64_t stream);

// submit() adds `ns` of estimated work to the stream. forget_pending() drops work that never started or no
// longer needs a fence.
void submit(ThreadLaunchState& l, StreamEntry& entry, uint64_t ns);
void forget_pending(ThreadLaunchState& l, StreamEntry& entry);

// Inserts a fence after the pending work of the stream. If no fence can be inserted, the work is dropped. In
// a stream without a slot, the work counts as unfenced until the thread has waited for everything.
void insert_fence(Process& p, ThreadLaunchState& l, StreamEntry& entry);

// Inserts fences into all streams of the thread that allow one now. Returns false if some work remains
// unfenced.
bool insert_fences(Process& p, ThreadLaunchState& l);

// Sets the thread's unfenced work, also in its shared line.
void set_unfenced(ThreadLaunchState& l, uint64_t unfenced);

// Returns whether the device has passed the fence.
bool is_signaled(Process& p, const Fence& fence);

// Returns the estimated ns of the process's fenced work in flight on the device, over all threads.
uint64_t fenced_work(Process& p, unsigned device);

// Returns whether other threads' work runs before the work that the fence covers.
bool is_behind_others(Process& p, const Fence& fence);

// stream_ends() is called before a stream is destroyed. No more fences are inserted there, and its slot is
// free when its fenced work is done. context_ended() is called after a context has ended. Its streams have
// then ended too, and so has the page's registration if the context made it.
void stream_ends(CUstream stream);
void context_ended(Process& p, uint64_t context);

}  // namespace carve::guest
