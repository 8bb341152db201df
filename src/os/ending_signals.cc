#include "os/ending_signals.h"

#include <sys/signalfd.h>

#include <csignal>

namespace carve::os {

Fd take_ending_signals() {
  signal(SIGPIPE, SIG_IGN);
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  return Fd(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace carve::os
