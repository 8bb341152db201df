// Finds the launch state of the calling thread. Each thread has one state per device in the Process page
// (process/launch_state.h, ThreadLaunchState). It holds the thread's counts, its line for the agent
// (wire/shm/work.h) and its stream entries. A launch finds it with one load and one compare. The first launch
// on another device, after a fork or after a change of context claims a state. States of ended threads are
// reused. When all lines are in use, further threads share the last one.
#pragma once

#include "guest/launch/estimate.h"
#include "guest/process/device_lookup.h"

namespace carve::guest {

// This thread's state on the device of its current context. With initial-exec TLS, finding it takes one load
// and one compare.
struct ThisThread {
  ThreadLaunchState* now;  // Null if unknown; the next launch then claims one.
  uint64_t claim;          // The claim of `now`. Differs if a fork or another thread has taken the state.
  bool leaves;             // Whether an exit handler of the thread is registered.
};
extern __thread ThisThread this_thread;

inline ThreadLaunchState* this_thread_state() {
  ThreadLaunchState* l = this_thread.now;
  return l != nullptr && l->claim.load(std::memory_order_relaxed) == this_thread.claim ? l : nullptr;
}

// Returns the thread's state, which is claimed if necessary. Returns null without a current context, on a
// device outside the slice, or if all states are taken.
ThreadLaunchState* claim_thread_state(Process& p);

// Records that the thread's current context may have changed.
inline void context_moved() {
  if (ThreadLaunchState* l = this_thread_state()) {
    l->word = ~uint64_t{0};
    l->moved = true;
  }
}

// Returns whether no thread ever had this state. Then no later state was ever used either, because they are
// taken in order.
inline bool is_untaken(const ThreadLaunchState& l) { return l.claim.load(std::memory_order_relaxed) == 0; }

}  // namespace carve::guest
