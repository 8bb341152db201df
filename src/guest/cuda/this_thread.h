// Which thread is launching, and where: per thread and device one place in the process's page
// (quota/process.h, Launching) with the thread's counts, its line for the agent (wire/shm/work.h) and what it
// remembers of its streams. A launch finds it with one load and one compare; the first on another device,
// after a fork or after a change of context claims one. Places of threads that ended are taken again; threads
// beyond the last line share that one.
#pragma once

#include "guest/cuda/device.h"
#include "guest/cuda/estimate.h"

namespace carve::guest {

// This thread's state on the device of its current context. Initial-exec: one load, one compare.
struct ThisThread {
  ThreadLaunchState* now;  // Null: not known; the next launch asks.
  uint64_t claim;          // Of `now`. Differs where a fork or another thread took the place since.
  bool leaves;             // Something runs at the thread's end.
};
extern __thread ThisThread this_thread;

inline ThreadLaunchState* this_thread_state() {
  ThreadLaunchState* l = this_thread.now;
  return l != nullptr && l->claim.load(std::memory_order_relaxed) == this_thread.claim ? l : nullptr;
}

// The same, found or claimed. Null: no current context, a device that is not ours, or every place is taken.
ThreadLaunchState* claim_thread_state(Process& p);

// The thread's current context may have changed.
inline void context_moved() {
  if (ThreadLaunchState* l = this_thread_state()) {
    l->word = ~uint64_t{0};
    l->moved = true;
  }
}

// Nobody ever had the place in this process, and so none behind it: they are taken in their order.
inline bool is_untaken(const ThreadLaunchState& l) { return l.claim.load(std::memory_order_relaxed) == 0; }

}  // namespace carve::guest
