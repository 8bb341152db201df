// The files of a supervised program, in its directory:
//
//   lock        held while the supervisor runs
//   state.json  SupervisorState: which attempt was started, and how it ended
//   log/0.log   the newest lines of the program's output (runner/log_files.h)
//
// The directory belongs to the program's user, so a reader trusts none of the files: they may be replaced by
// FIFOs or symbolic links, and state.json may name any process. A program that writes there only affects
// how it is itself displayed.
#pragma once

#include <cstdint>
#include <string>

#include "core/failure.h"

namespace carve::runner {

inline constexpr const char* state_file_name = "state.json";
inline constexpr const char* lock_file_name = "lock";
inline constexpr const char* log_folder_name = "log";
inline constexpr unsigned program_file_mode = 0640;  // The controller reads with the group of the directory.
inline constexpr size_t max_state_bytes = 4096;

// `attempt` counts the starts in one directory. No attempt is started twice, because the state is on disk
// before the program is executed.
struct SupervisorState {
  uint32_t attempt = 0;
  int64_t started_ns = 0;              // UTC; start of the attempt, later of the program.
  int64_t ended_ns = 0;                // UTC; 0 while it runs, or if its supervisor was killed.
  int64_t program_ended_ns = 0;        // UTC; before the supervisor cleans up.
  uint32_t exit_status = 0;            // As in a shell (runner/runner.h).
  uint32_t signal = 0;                 // The signal that ended the program; 0 if none did.
  uint64_t exceeded_memory_bytes = 0;  // The memory limit that killed one of its processes; 0 if none did.
  int32_t program_pid = 0;             // Also the program's process group; 0 if not started yet.
  uint64_t program_start = 0;          // Field 22 of /proc/PID/stat.
  int32_t supervisor_pid = 0;
  uint64_t supervisor_start = 0;
  std::string boot_id;  // The process ids belong to this boot.
  std::string
      start_error;  // The last line of a program or container engine that could not start; otherwise empty.

  friend bool operator==(const SupervisorState&, const SupervisorState&) = default;
};

// How long a supervisor may clean up before it may be killed.
inline constexpr int64_t clean_up_patience_ns = 10'000'000'000;

// Returns whether the program has ended and its supervisor is cleaning up.
bool is_cleaning_up(const SupervisorState&, int64_t utc_ns);

// Returns why the program ended: "exit status 1", "signal 9", "signal 9: its memory limit of 64 MiB was
// exceeded", "exit status 127: trian: no such file or directory".
std::string exit_text(const SupervisorState&);

enum class ProgramPhase : uint8_t {
  never_started,
  running,  // Its supervisor is running.
  ended,
  lost,  // Its supervisor and program were killed before the end was written.
};

struct SeenProgram {
  SupervisorState state;
  bool is_supervised = false;  // The lock in the directory is held by a supervisor.
  bool is_live = false;        // According to the liveness file, whatever the directory contains.

  ProgramPhase phase() const;
};

// Reads the files as of one moment. If the directory does not exist, the program was never started.
// `liveness_file` is a path (runner/liveness_file.h), or empty if there is no such file.
Outcome<SeenProgram> read_program(const std::string& directory, const std::string& liveness_file = "");

// Used by the supervisor. hold_liveness() marks the lock file, which must be open for writing, until the
// process has ended. A reader tests the mark without taking a lock, so it never prevents a supervisor from
// starting.
Outcome<SupervisorState> read_state(const std::string& directory);
Outcome<void> write_state(const std::string& directory, const SupervisorState&);
Outcome<void> hold_liveness(int lock);
// Writes the last state. If no new file can be written, for example because the program's output filled the
// disk, it overwrites the old one, whose space is sufficient. A crash of the machine may then damage it.
Outcome<void> write_last_state(const std::string& directory, const SupervisorState&);

}  // namespace carve::runner
