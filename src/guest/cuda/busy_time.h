// When a thread's work ran: busy from its first launch until it waited for all of it, and what its markers
// (markers.h) teach in between of how long its kernels take (estimate.h). All of it is off the path of most
// launches: gate.h calls here once per batch of estimated work (200 us, say), at the first launch after a
// thread was idle, and around calls that wait for the device.
#pragma once

#include "guest/cuda/clock.h"
#include "guest/cuda/fences.h"

namespace carve::guest {

// Looks how far the streams are. True where any moved. Learns, unless `now` is 0.
bool poll_fences(Process& p, ThreadLaunchState& l, uint64_t now);
// The device was somebody else's meanwhile: intervals that reach over that teach nothing.
inline void discard_interval(ThreadLaunchState& l) {
  l.busy_open = false;
  l.disturbed = true;
}

void begin_busy(ThreadLaunchState& l, uint64_t now);
void end_busy(ThreadLaunchState& l, uint64_t now);
inline bool is_idle(const ThreadLaunchState& l) { return l.busy_since == 0; }

// A call of the program's that waits for the device: `what` is the stream, or one of these. Lets the agent
// see how far the streams are meanwhile, and the thread goes idle if nothing of it is left at the end.
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
  bool running_ = false;  // At the beginning something was seen to be under way.
};

// Where the arbiter of the slice's device sleeps; null: nobody arbitrates. And lets it look now, if it does.
const shm::ArbiterWord* arbiter_of(const Process& p, unsigned device);
void wake(const shm::ArbiterWord* arbiter);

}  // namespace carve::guest
