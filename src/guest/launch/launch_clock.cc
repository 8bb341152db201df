#include "guest/launch/launch_clock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace carve::guest {

uint64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

void sleep_for(uint64_t ns) {
  const timespec t = {0, static_cast<long>(ns)};
  nanosleep(&t, nullptr);
}

void sleep_on(const std::atomic<uint64_t>& word, uint64_t value, uint64_t ns) {
  const timespec t = {0, static_cast<long>(ns)};
  syscall(SYS_futex, &word, FUTEX_WAIT, static_cast<uint32_t>(value), &t, nullptr, 0);
}

}  // namespace carve::guest
