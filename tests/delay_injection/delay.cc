// Delays threads: in a build with the preset `delay` the compiler inserts a call at each branch of this
// project's code. From time to time the calling thread sleeps, as if its processor had been given to another
// thread. The sleeps expose races between two threads within minutes; tools/stall cannot, because it stops
// whole processes.
//
//   CARVE_DELAY=STEPS,US   after at most STEPS branches, for at most US microseconds (100000,20000); 0 means never
//
// Both numbers are drawn uniformly over their orders of magnitude, because some races are as short as two
// instructions and others as long as a hundred system calls. No thread sleeps more than half of its lifetime.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

struct Dice {
  uint64_t state;
  uint64_t left;  // Branches until the next sleep; 0 before the first.
  uint64_t most_steps, most_us;
  uint64_t born_us, slept_us;
};
__thread Dice dice;

uint64_t next() {  // xorshift64*.
  dice.state ^= dice.state >> 12, dice.state ^= dice.state << 25, dice.state ^= dice.state >> 27;
  return dice.state * 0x2545F4914F6CDD1D;
}

// Returns a number from 1 to `most`; each order of magnitude is equally likely.
uint64_t some(uint64_t most) {
  const unsigned bits = 64 - static_cast<unsigned>(__builtin_clzll(most | 1));
  const uint64_t below = uint64_t{1} << (1 + next() % bits);
  return 1 + next() % (below < most ? below : most);
}

uint64_t now_us() {
  timespec now = {};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

void begin() {
  dice.born_us = now_us();
  dice.state = dice.born_us << 32 ^ static_cast<uint64_t>(syscall(SYS_gettid)) ^ 1;
  dice.most_steps = 100'000, dice.most_us = 20'000;
  if (const char* words = getenv("CARVE_DELAY")) {
    char* end = nullptr;
    dice.most_steps = strtoull(words, &end, 10);
    if (*end == ',') dice.most_us = strtoull(end + 1, nullptr, 10);
  }
  dice.left = dice.most_steps == 0 ? UINT64_MAX : some(dice.most_steps);
}

}  // namespace

extern "C" void __sanitizer_cov_trace_pc();
extern "C" void __sanitizer_cov_trace_pc() {
  if (--dice.left + 1 > 1) return;
  const int kept = errno;
  if (dice.most_us == 0) {
    begin();
  } else {
    const uint64_t us = some(dice.most_us);
    if (dice.slept_us + us <= dice.most_us + (now_us() - dice.born_us) / 2) {
      const timespec length = {static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1000)};
      syscall(SYS_nanosleep, &length, nullptr);
      dice.slept_us += us;
    }
    dice.left = some(dice.most_steps);
  }
  errno = kept;
}
