// How a program becomes a slice's program (docs/decisions/0002). Three processes take part:
//
//   the runner  requests the slice, forks, waits, and passes signals and the exit status through
//   its child   requests to enter the slice, sets the environment that the agent returns, and executes the
//               program. The kernel reports the caller's pid to the agent, so only the caller can enter.
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

#include "client/agent_client.h"
#include "wire/api/problem.h"

namespace carve::runner {

// Exit statuses, like those of shells and container engines. 128 + N: signal N ended the program.
inline constexpr int failed_status = 125;  // An error of Carve.
inline constexpr int not_executable_status = 126;
inline constexpr int no_program_status = 127;

// The name of the slice, in the environment of its programs.
inline constexpr const char* slice_variable = "CARVE_SLICE";

struct Run {
  const client::AgentClient& agent;  // The slice's agent.
  std::string slice;                 // Granted, not yet entered; empty to run the program without a slice.
  std::vector<std::string> program;  // The program and its arguments; not empty.
  // Messages to the user who started the program: a text, or the agent's rejection.
  std::function<void(const std::string&)> say;
  std::function<void(const api::Problem&)> complain;
  // Runs under a supervisor, and may be restarted in the same slice: the slice is not released. The program
  // has its own process group, which gets the signals, and which is killed when the program has ended. The
  // kernel kills the program if this process is killed, unless the program changed its user.
  bool is_supervised = false;
  // Called in the program's process before it enters the slice; may be null.
  std::function<Outcome<void>()> prepare = nullptr;
  std::function<void(pid_t)> started = nullptr;          // Called with its process, before it is executed.
  std::function<void(int wait_status)> ended = nullptr;  // Called with the program's waitpid() status.
  std::vector<std::string> devices = {};  // UUIDs of the slice's devices in its order; empty if unknown.
};

// Runs the program in the slice and waits for it, and without a cgroup for its descendants too. Returns the
// exit status. The slice ends with its last process, or immediately if no process could enter it.
int run(const Run& run);

// Sets the variables that the agent returns. The loader's lists, LD_PRELOAD and LD_LIBRARY_PATH, are put in
// front of the current values.
void set_environment(const std::map<std::string, std::string>& environment);

// Returns the exit status of a process for a shell, from its waitpid() status.
int exit_status(int wait_status);

}  // namespace carve::runner
