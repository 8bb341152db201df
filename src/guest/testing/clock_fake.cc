#include "guest/testing/clock_fake.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest/launch/launch_clock.h"

namespace carve::guest {
namespace {

std::atomic<uint64_t> still_at{0};  // 0 means the real clock.

}  // namespace

// These functions replace launch_clock.cc, which the linker takes from its archive only if no other object
// defines them.
uint64_t monotonic_ns() {
  if (virtual_clock != nullptr) return virtual_clock->monotonic_ns();
  if (const uint64_t now = still_at; now != 0) return now;
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

void sleep_for(uint64_t ns) {
  if (virtual_clock != nullptr) return virtual_clock->sleep_for(ns);
  const timespec t = {0, static_cast<long>(ns)};
  nanosleep(&t, nullptr);
}

void sleep_on(const std::atomic<uint64_t>& word, uint64_t value, uint64_t ns) {
  if (virtual_clock != nullptr) return virtual_clock->sleep_on(word, value, ns);
  const timespec t = {0, static_cast<long>(ns)};
  syscall(SYS_futex, &word, FUTEX_WAIT, static_cast<uint32_t>(value), &t, nullptr, 0);
}

StillClock::StillClock() { still_at = monotonic_ns(); }
StillClock::~StillClock() { still_at = 0; }
void StillClock::pass(uint64_t ns) { still_at += ns; }

}  // namespace carve::guest
