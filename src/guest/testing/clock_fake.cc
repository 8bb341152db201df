#include "guest/testing/clock_fake.h"

#include <time.h>

#include <atomic>

#include "guest/launch/launch_clock.h"

namespace carve::guest {
namespace {

std::atomic<uint64_t> still_at{0};  // 0: the real clock.

}  // namespace

// Replaces launch_clock.cc, which the linker takes from its archive only if no other object defines it.
uint64_t monotonic_ns() {
  if (const uint64_t now = still_at; now != 0) return now;
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

StillClock::StillClock() { still_at = monotonic_ns(); }
StillClock::~StillClock() { still_at = 0; }
void StillClock::pass(uint64_t ns) { still_at += ns; }

}  // namespace carve::guest
