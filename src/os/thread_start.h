// Starts threads in a program whose loop or main thread handles the signals.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace carve::os {

// Starts a thread with all signals blocked. The caller's signal mask does not change. Throws
// std::system_error if the system cannot create another thread.
template <class Run>
std::thread start_thread(Run&& run) {
  struct BlockedSignals {
    sigset_t before;
    BlockedSignals() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  };
  const BlockedSignals blocked;
  return std::thread(std::forward<Run>(run));
}

}  // namespace carve::os
