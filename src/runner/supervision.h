// Runs a program once and keeps its output and its end in the program's directory
// (runner/supervisor_state.h).
//
// If one of them is killed:
// * The supervisor, before it wrote that the attempt was begun: nothing was started; the attempt may be
//   repeated.
// * The supervisor, later: the kernel kills the program, and the agent the other processes of the slice. The
//   next supervisor kills the rest of the program's process group. The attempt is lost and is not repeated.
// * The program: its process group is killed with it, and the end is written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/failure.h"
#include "runner/supervisor_state.h"

namespace carve::runner {

// Exit statuses of carve-supervise.
inline constexpr int supervised_status = 3;  // Another supervisor has the directory.
inline constexpr int begun_status = 4;       // This attempt was already begun.

inline constexpr int first_cgroup_file = 3;

// The input of carve-supervise on its standard input, as JSON: neither the command nor the environment is on
// a command line that other users could read.
struct SuperviseRequest {
  std::string directory;     // It exists. Relative to the working directory of carve-supervise.
  std::string agent_socket;  // Socket of the slice's agent; unused without a slice.
  std::string slice;         // Empty if the program runs without a slice.
  uint32_t attempt = 1;
  std::string workdir;  // If empty, HOME, or / if the user cannot enter it.
  std::vector<std::string> command;
  std::map<std::string, std::string> env;  // The whole environment of the program.
  // The number of open files, from first_cgroup_file on, by which the program joins its cgroups
  // (runner/replica_cgroup.h).
  uint32_t cgroup_files = 0;
  // They are followed by the open liveness file, which the supervisor closes when its program has ended
  // (runner/liveness_file.h).
  bool has_liveness_file = false;
  std::string memory_events;         // Counts kills by the memory limit; empty if there is no limit.
  uint64_t memory_limit_bytes = 0;   // For the message of a kill.
  std::vector<std::string> cleanup;  // A command to run when the program has ended, before its end is
                                     // written; empty if none.
};

// Runs the program of the request to its end, like carve-supervise. Returns the exit status of the
// supervisor: 0, supervised_status, begun_status, or failed_status of runner/runner.h.
int supervise(const SuperviseRequest&);

}  // namespace carve::runner
