// For unit tests: while an object of this class exists, only the test moves the time.
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
