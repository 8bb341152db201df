// The agent's one loop: epoll over sockets, pidfds and timers. Everything that changes a slice runs here,
// one callback after the other, so there is no lock in the agent; whatever may block (NVML) has a thread
// of its own and posts its results through an eventfd.
//
// A callback may forget any descriptor, its own included: what was forgotten is not called again, even when
// the kernel had already reported it.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <unordered_map>

#include "node/os/fd.h"

namespace carve::node {

class Loop {
 public:
  Loop();

  // Level-triggered. The descriptor stays the caller's; forget it before closing it.
  void watch(int fd, uint32_t events, std::function<void(uint32_t events)> call);
  void watch_for(int fd, uint32_t events);  // Other events of a watched descriptor.
  void forget(int fd);

  void every(int64_t ns, std::function<void()> call);
  void after(int64_t ns, std::function<void()> call);  // Once.

  void run();  // Until stop().
  void stop() { stopped_ = true; }

 private:
  struct Watched {
    int fd;
    std::function<void(uint32_t)> call;
  };
  struct Timer {
    int64_t period;
    std::function<void()> call;
  };
  void run_due_timers();

  Fd epoll_;
  uint64_t next_ = 1;
  std::unordered_map<uint64_t, Watched> watched_;  // By a number that is never used again.
  std::unordered_map<int, uint64_t> number_of_;
  std::multimap<int64_t, Timer> timers_;  // By CLOCK_MONOTONIC ns when due.
  bool stopped_ = false;
};

}  // namespace carve::node
