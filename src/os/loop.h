// The agent's loop: epoll over sockets, pidfds and timers. All changes of slices run here, one callback after
// the other, so the agent needs no lock. Code that may block (NVML) has its own thread and posts its results
// (post(), os/worker.h, os/workers.h).
//
// A callback may forget any descriptor, including its own. The callback of a forgotten descriptor is not
// called again, even if the kernel had already reported an event.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <unordered_map>
#include <utility>

#include "os/fd.h"
#include "os/loop_poster.h"

namespace carve::os {

// The turns of a loop, which is what it does between two waits. Written by the loop's thread and read by any
// thread.
struct LoopTurns {
  std::atomic<int64_t> began_ns = 0;    // CLOCK_MONOTONIC of the current turn; 0 while it waits.
  std::atomic<int64_t> longest_ns = 0;  // Since the loop began to run.
};

class Loop {
 public:
  Loop();
  ~Loop();  // Drops posted calls that have not run.
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Level-triggered. The caller owns the descriptor and must forget it before closing it.
  void watch(int fd, uint32_t events, std::function<void(uint32_t events)> call);
  void watch_for(int fd, uint32_t events);  // Changes the events of a watched descriptor.
  void forget(int fd);

  void every(int64_t ns, std::function<void()> call);
  void after(int64_t ns, std::function<void()> call);  // Runs once.

  // May be called in any thread. `call` soon runs in the loop's thread, after calls that were posted earlier.
  void post(std::function<void()> call) const { poster_.post(std::move(call)); }
  // For use by threads that may outlive the loop.
  const LoopPoster& poster() const { return poster_; }

  void run();  // Runs until stop(), after which it may be run again.
  const LoopTurns& turns() const { return turns_; }
  void stop() { stopped_ = true; }

 private:
  struct Watched {
    int fd;
    uint32_t events;
    std::function<void(uint32_t)> call;
  };
  struct Timer {
    int64_t period;
    std::function<void()> call;
  };
  void run_due_timers();

  const LoopPoster poster_;
  Fd epoll_;
  uint64_t next_ = 1;
  std::unordered_map<uint64_t, Watched> watched_;  // By a number that is never reused.
  std::unordered_map<int, uint64_t> number_of_;
  std::multimap<int64_t, Timer> timers_;  // By due time, in ns of CLOCK_MONOTONIC.
  bool stopped_ = false;
  LoopTurns turns_;
};

}  // namespace carve::os
