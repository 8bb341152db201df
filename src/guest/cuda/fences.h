// How far the device has come, told by the device itself: behind launched work a cuStreamWriteValue64 writes
// a number into our registered page, which the agent reads (wire/shm/work.h, StreamWork). A marker covers a
// batch of estimated work. It is put in by the launch that begins the next batch, or before this thread waits
// for the device, so a launch itself stays a jump; and never into a stream that is being captured. Where the
// device cannot write to host memory, an event without timing stands in its place, one per stream at a time,
// and this process asks for it when it comes by.
//
// The legacy default stream waits for the other streams of its context and they for it, a marker in it too.
// It gets one where the program has just launched there, or where nothing else of the thread's is under way.
#pragma once

#include "guest/cuda/this_thread.h"

namespace carve::guest {

// How a stream is called in a launch: a handle, where the entries of the per-thread flavour mean another
// default stream by 0 (cuda.h, CU_STREAM_PER_THREAD).
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

// Whether what is put on the stream now becomes part of a graph, or nobody can tell.
bool captured(uint64_t stream);

// The thread's entry for the stream in its current context. Whatever had its place gets a marker first.
StreamEntry& stream_entry_of(Process& p, ThreadLaunchState& l, uint64_t stream);

// `ns` of estimated work are on their way to the stream. And: what is pending there never went, or needs no
// marker any more.
void submit(ThreadLaunchState& l, StreamEntry& entry, uint64_t ns);
void forget_pending(ThreadLaunchState& l, StreamEntry& entry);

// Puts a marker behind what is pending on the stream. Where none can be had the work is forgotten, except in
// a stream without a place: it counts as unmarked until everything was waited for.
void insert_fence(Process& p, ThreadLaunchState& l, StreamEntry& entry);

// The same for all streams of the thread that may have one now. False where some work stays unmarked.
bool insert_fences(Process& p, ThreadLaunchState& l);

// What of the thread's has no marker yet, as its line says it.
void set_unfenced(ThreadLaunchState& l, uint64_t unfenced);

// Whether the device has come by it.
bool is_signaled(Process& p, const Fence& fence);

// A stream is about to be destroyed: nobody puts a marker there any more; its place is free when what is
// marked is done. A context is gone, with its streams, and with our page if it had registered it.
void stream_ends(CUstream stream);
void context_ended(Process& p, uint64_t context);

}  // namespace carve::guest
