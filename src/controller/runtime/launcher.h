// The launcher: a child process of the controller that starts supervisors (runner/supervision.h), each as the
// user of its program. The controller forks it first of all, before it has threads, sockets or a database, so
// that what the launcher is able to do is only what its three requests say:
//
//   start   runs carve-supervise as a user in a directory of the folder of the programs, which it makes; the
//           program's limits hold in cgroups that it makes too (runner/replica_cgroup.h)
//   signal  sends a signal to the processes of a program, with the rights of the program's user
//   remove  deletes a program's directory, with the rights of the program's user, and its cgroups
//
// As root it keeps three capabilities: to change the user and the group, and to give a directory to a user.
// As another user without them it starts programs of that user alone.
//
// A program's directory belongs to the program's user, and to the controller's group with mode 2750: the
// controller reads its files (runner/supervisor_state.h) and writes none. A supervisor is no child of the
// launcher: it outlives both. The launcher ends with the controller.
#pragma once

#include <string>

#include "os/fd.h"
#include "runner/replica_cgroup.h"
#include "runner/supervision.h"

namespace carve::controller {

inline constexpr const char* programs_folder = "/programs";  // Below the controller's state.
// Beside the folder of the programs: a liveness file for each (runner/liveness_file.h), for the controller
// only.
std::string liveness_file_of(const std::string& programs, const std::string& name);

// `supervise.directory` is not used. `supervise.workdir` may be empty: the home of the user. `supervise.env`
// is added to PATH, HOME, USER and LANG.
struct LaunchRequest {
  uint32_t uid = 0;
  std::string name;  // Of the program's directory: one component.
  runner::ReplicaLimits limits;
  runner::SuperviseRequest supervise;
};

// If the program has no process, SIGKILL is sent to its supervisor if that one is stopped or started none.
struct SignalRequest {
  std::string name;
  int32_t signal = 0;
};

// The program has ended. A directory that does not exist is removed.
struct RemoveRequest {
  std::string name;
};

class Launcher {
 public:
  // Forks the launcher. `program` is the path of carve-supervise, `folder` that of the programs' directories,
  // which exists when the first program is started.
  static Outcome<Launcher> begin(const std::string& program, const std::string& folder);

  // Why limits of programs are not enforced here.
  const runner::LimitProblems& limit_problems() const { return limit_problems_; }

  // One thread at a time may call these. start() answers when the supervisor was started. The others answer
  // before they have an effect, because the files of a user can make it take any time.
  Outcome<void> start(const LaunchRequest&) const;
  Outcome<void> send_signal(const SignalRequest&) const;
  Outcome<void> remove(const RemoveRequest&) const;

 private:
  Launcher(os::Fd socket, runner::LimitProblems problems)
      : socket_(std::move(socket)), limit_problems_(std::move(problems)) {}
  Outcome<void> ask(const std::string& message) const;

  os::Fd socket_;
  runner::LimitProblems limit_problems_;
};

}  // namespace carve::controller
