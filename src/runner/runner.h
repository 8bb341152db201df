// How a program becomes a slice's program (docs/decisions/0002). Three processes take part:
//
//   the runner  requests the slice, forks, waits, and passes signals and the exit status through
//   its child   asks the agent to enter the slice, sets the environment that the agent returns, and executes
//               the program. The kernel tells the agent the caller's pid, so only the caller can enter.
//   the agent   finds the program's descendants by cgroup; without a cgroup, by descent from the runner
//
// With a cgroup, the program survives the end of the runner. Without a cgroup, the runner is the subreaper of
// the program's descendants and ends after the last of them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/client.h"
#include "wire/api/problem.h"

namespace carve::runner {

// Exit statuses, as shells and container engines have them. 128 + N: signal N ended the program.
inline constexpr int failed_status = 125;  // An error of Carve.
inline constexpr int not_executable_status = 126;
inline constexpr int no_program_status = 127;

struct Run {
  const client::Client& client;      // The agent of the slice.
  std::string slice;                 // Granted, and not yet entered; empty: the program runs without a slice.
  std::vector<std::string> program;  // The program and its arguments; not empty.
  // What the person who started the program is to read: a sentence, or the agent's refusal.
  std::function<void(const std::string&)> say;
  std::function<void(const api::Problem&)> complain;
  // Under a supervisor, and started again in the same slice: the slice is not given back. The program has a
  // process group of its own, which gets the signals, and which is killed when the program has ended. The
  // kernel kills the program if this process is killed, unless the program changed its user.
  bool is_supervised = false;
  // Called in the program's process before it enters the slice; null: nothing is.
  std::function<Outcome<void>()> prepare = nullptr;
  std::function<void(pid_t)> started = nullptr;          // With its process; it is executed afterwards.
  std::function<void(int wait_status)> ended = nullptr;  // What waitpid() stored of the program.
};

// Runs the program in the slice and waits for it, and without a cgroup for its descendants too. Returns the
// exit status. The slice ends with its last process, or at once if no process could enter it.
int run(const Run& run);

// Sets the variables that the agent returns. The loader's lists, LD_PRELOAD and LD_LIBRARY_PATH, are put in
// front of what is there.
void set_environment(const std::map<std::string, std::string>& environment);

// Returns the exit status of a process for a shell, from what waitpid() stored.
int exit_status(int wait_status);

}  // namespace carve::runner
