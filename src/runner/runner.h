// Runs a program in a slice (docs/decisions/0002). Three processes take part:
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

// Exit statuses, like those of shells and container engines. 128 + N means that signal N ended the program.
inline constexpr int failed_status = 125;  // An error of Carve.
inline constexpr int not_executable_status = 126;
inline constexpr int no_program_status = 127;

// Environment variable with the name of the slice, set for its programs.
inline constexpr const char* slice_variable = "CARVE_SLICE";

struct Run {
  const client::AgentClient& agent;  // The slice's agent.
  std::string slice;                 // Granted but not yet entered; empty to run without a slice.
  std::vector<std::string> program;  // The program and its arguments; not empty.
  // Prints a message for the user who started the program: a text, or the agent's rejection.
  std::function<void(const std::string&)> say;
  std::function<void(const api::Problem&)> complain;
  // True for a program under a supervisor, which may be restarted in the same slice, so the slice is not
  // released. The program gets its own process group, which receives the signals and is killed when the
  // program has ended. The kernel kills the program if this process is killed, unless the program changed its
  // user.
  bool is_supervised = false;
  // True for a program of `carve run -d`. Its CUDA_VISIBLE_DEVICES lists the node's devices, as without a
  // supervisor.
  bool is_detached = false;
  // True if the program may be started again in the same slice, which then ends with this process.
  bool keeps_slice = false;
  // True for a process of `carve exec`, which joins the running program of a slice. The slice has another
  // supervisor and is not released.
  bool joins = false;
  // Called in the program's process before it enters the slice; may be null.
  std::function<Outcome<void>()> prepare = nullptr;
  std::function<void(pid_t)> started = nullptr;          // Called with its pid before it is executed.
  std::function<void()> executed = nullptr;              // Called when the program has been executed.
  std::function<void(int wait_status)> ended = nullptr;  // Called with the program's waitpid() status.
  std::vector<std::string> devices = {};  // UUIDs of the slice's devices in its order; empty if unknown.
};

// Runs the program in the slice and waits for it and, if there is no cgroup, for its descendants. Returns the
// exit status. The slice ends with its last process, or immediately if no process could enter it.
int run(const Run& run);

// Sets the variables that the agent returned. LD_PRELOAD and LD_LIBRARY_PATH are prepended to the current
// values.
void set_environment(const std::map<std::string, std::string>& environment);

// Converts a waitpid() status into the exit status that a shell would report.
int exit_status(int wait_status);

}  // namespace carve::runner
