// The launcher: a child process of the controller that starts supervisors (runner/supervision.h), each as the
// user of its program. The controller forks it first of all, before it has threads, sockets or a database, so
// that what the launcher is able to do is only what its two requests say:
//
//   start   runs carve-supervise as a user in a directory, which it makes
//   signal  sends a signal to the process group of a program, if the process still is that program
//
// A supervisor is no child of the launcher: it outlives both. The launcher ends with the controller.
#pragma once

#include <string>

#include "os/fd.h"
#include "runner/supervision.h"

namespace carve::controller {

// `supervise.workdir` may be empty: the home of the user, or / if there is none. `supervise.env` is added to PATH, HOME, USER and
// LANG.
struct LaunchRequest {
  uint32_t uid = 0;
  runner::SuperviseRequest supervise;
};

struct SignalRequest {
  int32_t pid = 0;
  uint64_t start = 0;  // Field 22 of /proc/PID/stat.
  int32_t signal = 0;
};

class Launcher {
 public:
  // Forks the launcher. `program` is the path of carve-supervise.
  static Outcome<Launcher> begin(const std::string& program);

  // One thread at a time may call these. Each answers when the supervisor was started or the signal was sent.
  Outcome<void> start(const LaunchRequest&) const;
  Outcome<void> send_signal(const SignalRequest&) const;

 private:
  explicit Launcher(os::Fd socket) : socket_(std::move(socket)) {}
  Outcome<void> ask(const std::string& message) const;

  os::Fd socket_;
};

}  // namespace carve::controller
