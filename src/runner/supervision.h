// The files of a supervised program, in its directory:
//
//   lock        held by the supervisor for its life
//   state.json  SupervisorState: which attempt was begun, and how it ended
//   log/0.log   the newest lines of the program's output (runner/log_files.h)
//
// The supervisor runs a program once. `attempt` counts the starts in one directory; an attempt that was begun
// is never begun again, whatever was killed in between.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/failure.h"

namespace carve::runner {

inline constexpr const char* state_file_name = "state.json";
inline constexpr const char* lock_file_name = "lock";
inline constexpr const char* log_folder_name = "log";

// Exit statuses of carve-supervise.
inline constexpr int supervised_status = 3;  // Another supervisor has the directory.
inline constexpr int begun_status = 4;       // This attempt was begun before.

// What carve-supervise reads from its standard input, as JSON: neither the command nor the environment is on
// a command line that other users could read.
struct SuperviseRequest {
  std::string directory;     // Absolute; it exists.
  std::string agent_socket;  // Of the slice's agent; unused without a slice.
  std::string slice;         // Empty: the program runs without a slice.
  uint32_t attempt = 1;
  std::string workdir;
  std::vector<std::string> command;
  std::map<std::string, std::string> env;  // The whole environment of the program.
};

struct SupervisorState {
  uint32_t attempt = 0;
  int64_t started_ns = 0;  // UTC.
  int64_t ended_ns = 0;    // UTC; 0: it has not ended, or its supervisor was killed.
  uint32_t exit_status = 0;
  int32_t program_pid = 0;     // 0: not started yet.
  uint64_t program_start = 0;  // Field 22 of /proc/PID/stat.
};

// Why a program ended, from its exit status: "exit status 1", "signal 9".
std::string exit_text(uint32_t exit_status);

// What the files of a directory say. `is_supervised`: a supervisor lives. A program that was begun, has no
// end and no supervisor is lost: its supervisor was killed, and the kernel killed it with its supervisor.
struct SeenProgram {
  SupervisorState state;
  bool is_supervised = false;
};
Outcome<SeenProgram> read_program(const std::string& directory);

// Runs the program of the request to its end, as carve-supervise does. Returns the exit status of the
// supervisor.
int supervise(const SuperviseRequest&);

}  // namespace carve::runner
