// What this process has running, told to the agent: a line per launching thread, and per stream how far it
// has come, which the device itself writes (wire/shm/work.h). All of it is off the path of most launches:
// gate.h calls here once per batch of estimated work (200 us, say), at the first launch after a thread was
// idle, and around calls that wait for the device.
//
// A marker is a cuStreamWriteValue64 into our registered page, behind the work that it covers. It is put in
// by the launch that begins the next batch, or before this thread waits for the device, so a launch itself
// stays a jump. It never goes into a stream that is being captured. Where the device cannot write to host
// memory, an event without timing stands in its place, one per stream at a time, and this process asks for it
// when it comes by.
//
// The legacy default stream waits for the other streams of its context and they for it, a marker in it too.
// It gets one where the program has just launched there, or where nothing else of the thread's is under way.
#pragma once

#include "tenant/cuda/device.h"
#include "tenant/cuda/estimate.h"

namespace carve::tenant {

uint64_t monotonic_ns();

// This thread's state on the device of its current context. Initial-exec: one load, one compare.
struct Mine {
  Launching* now;  // Null: not known; the next launch asks.
  uint64_t claim;  // Of `now`. Differs where a fork or another thread took the place since.
  bool leaves;     // Something runs at the thread's end.
};
extern __thread Mine mine;

inline Launching* own() {
  Launching* l = mine.now;
  return l != nullptr && l->claim.load(std::memory_order_relaxed) == mine.claim ? l : nullptr;
}

// The same, found or claimed. Null: no current context, a device that is not ours, or every place is taken.
Launching* launching(Process& p);

// How a stream is called in a launch: a handle, where the entries of the per-thread flavour mean another
// default stream by 0 (cuda.h, CU_STREAM_PER_THREAD).
inline constexpr uint64_t legacy_stream = 0, per_thread_stream = 2;
inline uint64_t named(CUstream stream, bool per_thread = false) {
  const auto handle = reinterpret_cast<uint64_t>(stream);
  if (handle == 1) return legacy_stream;
  return handle == 0 && per_thread ? per_thread_stream : handle;
}
inline CUstream handle_of(uint64_t stream) { return reinterpret_cast<CUstream>(stream); }
inline Memo& memo_at(Launching& l, uint64_t stream) {
  return l.memo[stream * 0x9e37'79b9'7f4a'7c15 >> (64 - memo_bits)];
}

// Whether what is put on the stream now becomes part of a graph, or nobody can tell.
bool captured(uint64_t stream);

// The thread's entry for the stream in its current context. Whatever had its place gets a marker first.
Memo& memo_of(Process& p, Launching& l, uint64_t stream);

// What was launched is on its way, `sign` +1, or was not, or needs no marker any more, -1.
void submit(Launching& l, Memo& memo, uint64_t ns);
void forget_pending(Launching& l, Memo& memo);

// Puts a marker behind what is pending on the stream. Where none can be had the work is forgotten, except in
// a stream without a place: it counts as unmarked until everything was waited for.
void put_marker(Process& p, Launching& l, Memo& memo);

// The same for all streams of the thread that may have one now. False where some work stays unmarked.
bool put_markers(Process& p, Launching& l);

// Looks how far the streams are. True where any moved. Learns, unless `now` is 0.
bool look(Process& p, Launching& l, uint64_t now);
// The device was somebody else's meanwhile: what is seen next teaches nothing.
inline void look_away(Launching& l) {
  l.looked_at = 0;
  l.disturbed = true;
}

void go_busy(Launching& l, uint64_t now);
void go_idle(Launching& l, uint64_t now);
inline bool is_idle(const Launching& l) { return l.busy_since == 0; }

// A call of the program's that waits for the device: `what` is the stream, or one of these. Lets the agent
// see how far the streams are meanwhile, and the thread goes idle if nothing of it is left at the end.
inline constexpr uint64_t whole_context = ~uint64_t{0}, unknown_work = ~uint64_t{1};
class Waiting {
 public:
  explicit Waiting(uint64_t what) : launching_(own()), what_(what) {
    if (launching_ != nullptr && !is_idle(*launching_)) begin();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (process_ != nullptr) end();
  }

 private:
  void begin();
  void end();

  Process* process_ = nullptr;
  Launching* launching_;
  uint64_t what_;
  uint64_t from_ = 0;
  bool running_ = false;  // At the beginning something was seen to be under way.
};

// A stream is about to be destroyed: nobody puts a marker there any more; its place is free when what is
// marked is done. A context is gone, with its streams, and with our page if it had registered it.
void stream_ends(CUstream stream);
void context_ended(Process& p, uint64_t context);

// The thread's current context may have changed.
inline void context_moved() {
  if (Launching* l = own()) {
    l->word = ~uint64_t{0};
    l->moved = true;
  }
}

// Lets the arbiter of the tenant's device look now, if it sleeps.
void wake_arbiter(const Process& p, unsigned device);

}  // namespace carve::tenant
