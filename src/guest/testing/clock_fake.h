// For unit tests: while an object of this class exists, only the test advances the time.
#pragma once

#include <stdint.h>

#include <atomic>

namespace carve::guest {

class StillClock {
 public:
  StillClock();
  StillClock(const StillClock&) = delete;
  StillClock& operator=(const StillClock&) = delete;
  ~StillClock();

  static void pass(uint64_t ns);
};

// A clock that a test advances. While it is set, it replaces the clock and the sleeps of
// launch/launch_clock.h.
class VirtualClock {
 public:
  virtual uint64_t monotonic_ns() = 0;
  virtual void sleep_for(uint64_t ns) = 0;
  virtual void sleep_on(const std::atomic<uint64_t>& word, uint64_t value, uint64_t ns) = 0;

 protected:
  ~VirtualClock() = default;
};
inline VirtualClock* virtual_clock = nullptr;

}  // namespace carve::guest
