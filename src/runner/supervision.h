// Runs a program once and keeps its output and its outcome in the program's directory
// (runner/supervisor_state.h).
//
// If a process is killed:
// * The supervisor, before it recorded the attempt: nothing was started, and the attempt may be repeated.
// * The supervisor, later: the kernel kills the program, and the agent kills the other processes of the
//   slice. The next supervisor kills the rest of the program's process group. The attempt is lost and is not
//   repeated.
// * The program: its process group is killed too, and the outcome is written.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"
#include "runner/supervisor_state.h"

namespace carve::runner {

// Exit statuses of carve-supervise.
inline constexpr int supervised_status = 3;  // Another supervisor holds the directory.
inline constexpr int begun_status = 4;       // This attempt was already started.

inline constexpr int first_cgroup_file = 3;
inline constexpr std::string_view start_report = "started\n";

// The standard input of carve-supervise, as JSON. The command and the environment are not on the command
// line, which other users could read.
struct SuperviseRequest {
  std::string directory;     // Must exist; relative to the working directory of carve-supervise.
  std::string agent_socket;  // Socket of the slice's agent; unused without a slice.
  std::string slice;         // Empty if the program runs without a slice.
  uint32_t attempt = 1;
  std::string workdir;  // If empty, HOME, or / if the user cannot enter it.
  std::vector<std::string> command;
  std::map<std::string, std::string> env;  // The whole environment of the program. A detached
                                           // program also gets that of the supervisor.
  // The number of open files, starting at first_cgroup_file, through which the program joins its cgroups
  // (runner/replica_cgroup.h).
  uint32_t cgroup_files = 0;
  // Whether the open liveness file follows them. The supervisor closes it when its program has ended
  // (runner/liveness_file.h).
  bool has_liveness_file = false;
  std::string memory_events;        // Counts kills by the memory limit; empty if there is no limit.
  uint64_t memory_limit_bytes = 0;  // For the message of a kill.
  // Set by `carve run -d` (runner/detached.h). The supervisor writes start_report to its standard output when
  // the program has been executed, creates its files for its own user only, and ends the slice when the
  // program has ended.
  bool is_detached = false;
  uint32_t program_umask = 022;      // Used for a detached program only.
  std::vector<std::string> devices;  // UUIDs of a detached program's slice, in its order.
  uint64_t slice_created_ns = 0;     // The slice of a detached program.
  // How often a detached program that failed is started again in its slice; 0 means never.
  uint32_t max_restarts = 0;
  std::vector<std::string> cleanup;  // A command to run when the program has ended, before its end is
                                     // written; empty if none.
};

// Returns after which time a program that ended like this is started again, for the restart with this number,
// from 0; no value if it is not. The time doubles from 100 ms to 1 minute.
std::optional<std::chrono::milliseconds> restart_delay(const SupervisorState& ended, uint32_t restart,
                                                       uint32_t max_restarts);

// Runs the program of the request until it ends, like carve-supervise. Returns the supervisor's exit status:
// 0, supervised_status, begun_status, or failed_status from runner/runner.h.
int supervise(const SuperviseRequest&);

}  // namespace carve::runner
