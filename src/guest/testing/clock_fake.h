// For unit tests: while there is one of these, time passes only where the test says so.
#pragma once

#include <stdint.h>

namespace carve::guest {

class StillClock {
 public:
  StillClock();
  StillClock(const StillClock&) = delete;
  StillClock& operator=(const StillClock&) = delete;
  ~StillClock();

  static void pass(uint64_t ns);
};

}  // namespace carve::guest
