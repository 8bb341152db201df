// The launcher: a child process of the controller that starts supervisors (runner/supervision.h), each as the
// user of its program. The controller forks it before it has threads, sockets or a database, so that the
// launcher can do nothing except serve three requests:
//
//   start   runs carve-supervise as a user in a new directory in the programs' folder, and creates the cgroups
//           that enforce the program's limits (runner/replica_cgroup.h)
//   signal  sends a signal to the processes of a program, with the rights of the program's user
//   remove  deletes a program's directory, with the rights of the program's user, and its cgroups
//
// As root, or if its systemd unit grants them, it keeps three capabilities: to change the user, to change the
// group, and to give a directory to a user. Without them it starts only programs of its own user. Programs of
// root are started only if it is root.
//
// A program's directory belongs to the program's user and the controller's group, with mode 2750, so the
// controller can read its files (runner/supervisor_state.h) but not write them. A supervisor is not a child
// of the launcher, so it outlives both. The launcher ends with the controller.
#pragma once

#include <string>

#include "os/fd.h"
#include "runner/replica_cgroup.h"
#include "runner/supervision.h"

namespace carve::controller {

inline constexpr const char* programs_folder = "/programs";  // Below the controller's state directory.
// Returns the path of a program's liveness file (runner/liveness_file.h). It is next to the programs' folder,
// and only the controller has access.
std::string liveness_file_of(const std::string& programs, const std::string& name);

// `supervise.directory` is not used. An empty `supervise.workdir` means the home of the user. `supervise.env`
// is added to PATH, HOME, USER and LANG.
struct LaunchRequest {
  uint32_t uid = 0;
  std::string name;  // Name of the program's directory, without slashes.
  runner::ReplicaLimits limits;
  runner::SuperviseRequest supervise;
};

// If the program has no process, SIGKILL goes to its supervisor, provided that the supervisor is stopped or
// has started no process.
struct SignalRequest {
  std::string name;
  int32_t signal = 0;
};

// The program must have ended. A missing directory counts as removed.
struct RemoveRequest {
  std::string name;
};

class Launcher {
 public:
  // Forks the launcher. `program` is the path of carve-supervise, and `folder` contains the programs'
  // directories; it must exist when the first program is started.
  static Outcome<Launcher> begin(const std::string& program, const std::string& folder);

  // Returns why the user's programs cannot be started, or an empty string if they can. May be called from any
  // thread.
  std::string start_problem(uint32_t uid) const;
  // Returns why limits of programs are not enforced on this machine.
  const runner::LimitProblems& limit_problems() const { return limit_problems_; }

  // Only one thread may call these at a time. start() returns when the supervisor was started. The others
  // return before they take effect, because a user's files can delay that indefinitely.
  Outcome<void> start(const LaunchRequest&) const;
  Outcome<void> send_signal(const SignalRequest&) const;
  Outcome<void> remove(const RemoveRequest&) const;

 private:
  Launcher(os::Fd socket, bool changes_user, runner::LimitProblems problems)
      : socket_(std::move(socket)), changes_user_(changes_user), limit_problems_(std::move(problems)) {}
  Outcome<void> ask(const std::string& message) const;

  os::Fd socket_;
  bool changes_user_;  // Whether it has the capabilities.
  runner::LimitProblems limit_problems_;
};

}  // namespace carve::controller
