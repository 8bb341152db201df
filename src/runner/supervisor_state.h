// The files of a supervised program, in its directory:
//
//   lock        held by the supervisor for its life
//   state.json  SupervisorState: which attempt was begun, and how it ended
//   log/0.log   the newest lines of the program's output (runner/log_files.h)
//
// The directory belongs to the program's user, so a reader trusts none of the files: they may be exchanged
// for FIFOs or symbolic links, and state.json may name any process. What a program writes there affects only
// what is shown of the program itself.
#pragma once

#include <cstdint>
#include <string>

#include "core/failure.h"

namespace carve::runner {

inline constexpr const char* state_file_name = "state.json";
inline constexpr const char* lock_file_name = "lock";
inline constexpr const char* log_folder_name = "log";
inline constexpr unsigned program_file_mode = 0640;  // The controller reads as the group of the directory.
inline constexpr size_t max_state_bytes = 4096;

// `attempt` counts the starts in one directory. An attempt that was begun is never begun again: the state is
// on disk before the program is executed.
struct SupervisorState {
  uint32_t attempt = 0;
  int64_t started_ns = 0;              // UTC; of the attempt until the program is executed, then of that.
  int64_t ended_ns = 0;                // UTC; 0: it has not ended, or its supervisor was killed.
  uint32_t exit_status = 0;            // As a shell has it (runner/runner.h).
  uint32_t signal = 0;                 // The signal that ended the program; 0: none did.
  uint64_t exceeded_memory_bytes = 0;  // The memory limit that killed a process of it; 0: none did.
  int32_t program_pid = 0;             // 0: not started yet. Also the number of the program's process group.
  uint64_t program_start = 0;          // Field 22 of /proc/PID/stat.
  int32_t supervisor_pid = 0;
  uint64_t supervisor_start = 0;
  std::string boot_id;  // The process ids are those of this boot.

  friend bool operator==(const SupervisorState&, const SupervisorState&) = default;
};

// Returns why the program ended: "exit status 1", "signal 9", "signal 9: its memory limit of 64 MiB was
// exceeded".
std::string exit_text(const SupervisorState&);

enum class ProgramPhase : uint8_t {
  never_started,
  running,  // Its supervisor lives.
  ended,
  lost,  // Its supervisor was killed before it could write the end; the kernel killed the program with it.
};

struct SeenProgram {
  SupervisorState state;
  bool is_supervised = false;  // A supervisor lives, by the lock in the directory.
  bool is_live = false;        // The liveness file shows that the program runs, whatever the directory has.

  ProgramPhase phase() const;
};

// Returns what the files say at one moment. A directory that does not exist has a program that was never
// started. `liveness_file`: its path (runner/liveness_file.h); empty: there is none.
Outcome<SeenProgram> read_program(const std::string& directory, const std::string& liveness_file = "");

// The supervisor's part. hold_liveness() marks the lock file, which is open for writing, until the process
// has ended; a reader tests the mark without taking a lock, so it never keeps a supervisor from its start.
Outcome<SupervisorState> read_state(const std::string& directory);
Outcome<void> write_state(const std::string& directory, const SupervisorState&);
Outcome<void> hold_liveness(int lock);

}  // namespace carve::runner
