// Writes the heartbeat every 50 ms, which shows the guest library that an agent runs. It has its own thread,
// so that programs do not assume that the agent has ended while its loop is busy. It also watches the loop
// and logs turns that last longer than a second.
#pragma once

#include <thread>

#include "os/loop.h"
#include "os/mutex.h"
#include "wire/shm/layout.h"

namespace carve::node {

inline constexpr int64_t beat_interval_ns = 50'000'000;
inline constexpr int64_t long_turn_ns = 1'000'000'000;

// Decides when to log a turn of the loop: once, when it has lasted `long_turn_ns`.
class LongTurns {
 public:
  // `began_ns` is the start of the current turn, or 0 while the loop waits. Returns the duration of the turn
  // if it is to be logged now, otherwise 0.
  int64_t to_log(int64_t began_ns, int64_t now_ns) {
    if (began_ns == 0 || began_ns == logged_ || now_ns - began_ns < long_turn_ns) return 0;
    logged_ = began_ns;
    return now_ns - began_ns;
  }

 private:
  int64_t logged_ = 0;  // Start of the last logged turn.
};

class Heart {
 public:
  // Both arguments must outlive this object. The first heartbeat is written before the constructor returns.
  Heart(shm::Heartbeat&, const os::LoopTurns&);
  ~Heart();
  Heart(const Heart&) = delete;
  Heart& operator=(const Heart&) = delete;

 private:
  void run() EXCLUDES(mutex_);

  shm::Heartbeat& page_;
  const os::LoopTurns& turns_;
  os::Mutex mutex_;
  os::ConditionVariable changed_;
  bool ends_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Declared last because it uses the other members.
};

}  // namespace carve::node
