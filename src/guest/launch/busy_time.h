// Measures when a thread's work ran. A thread is busy from its first launch until it has waited for all its
// work. In between, completed fences (fences.h) update the estimates of its kernels (estimate.h). Most
// launches do not call these functions. gate.h calls them once per fence interval of estimated work (200 us,
// for example), at the first launch after the thread was idle, and around calls that wait for the device.
#pragma once

#include "guest/launch/fences.h"
#include "guest/launch/launch_clock.h"

namespace carve::guest {

// Polls the thread's fences. Returns true if a fence completed. Updates estimates unless `now` is 0.
bool poll_fences(Process& p, ThreadLaunchState& l, uint64_t now);
// Discards the open interval, because other slices used the device during it. No estimate is updated from an
// interval that contains this moment.
inline void discard_interval(ThreadLaunchState& l) {
  l.busy_open = false;
  l.disturbed = true;
}

void begin_busy(Process& p, ThreadLaunchState& l, uint64_t now);
void end_busy(ThreadLaunchState& l, uint64_t now);
inline bool is_idle(const ThreadLaunchState& l) { return l.busy_since == 0; }

// The scope of a program's call that waits for the device. `what` is the stream, or one of these constants.
// The constructor first publishes the progress of the streams to the agent. The destructor marks the thread
// as idle if none of its work is left.
inline constexpr uint64_t whole_context = ~uint64_t{0}, unknown_work = ~uint64_t{1};
class Waiting {
 public:
  explicit Waiting(uint64_t what) : state_(this_thread_state()), what_(what) {
    if (state_ != nullptr && !is_idle(*state_)) begin();
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
  ThreadLaunchState* state_;
  uint64_t what_;
  uint64_t from_ = 0;
  bool running_ = false;  // Work was in flight at the beginning.
};

// Returns the word on which the arbiter of the slice's device sleeps, or null if the device has no arbiter.
// wake() makes a sleeping arbiter poll now.
const shm::ArbiterWord* arbiter_of(const Process& p, unsigned device);
void wake(const shm::ArbiterWord* arbiter);

}  // namespace carve::guest
