// Programs that `carve run -d` started. carve-supervise runs each of them in a session of its own and keeps
// its output and exit status in a directory of the user (runner/supervisor_state.h):
//
//   $XDG_STATE_HOME/carve/programs/SOCKET/NAME    with SOCKET the path of the agent's socket, '/' as %2F
//
// The directory belongs to the last program with this slice name. Starting another program removes all but
// the newest max_ended_programs that have ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "core/failure.h"
#include "runner/supervision.h"
#include "runner/supervisor_state.h"

namespace carve::runner {

inline constexpr size_t max_ended_programs = 20;  // Each has up to 50 MiB of output.

struct DetachedProgram {
  std::string directory;
  uint64_t slice_created_ns = 0;  // Distinguishes its slice from later ones with the same name.
  SeenProgram seen;
};

// Returns the folder of this user's programs in slices of the agent. `state` is $XDG_STATE_HOME, which is
// ignored if it is not an absolute path; `home` is the user's home directory.
std::string detached_folder(const std::string& state, const std::string& home, const std::string& socket);
// Does the same for this process's environment.
std::string detached_folder(const std::string& socket);

// Returns the last program that was started in a slice with this name; no value if there is none. Any text
// may be a name.
Outcome<std::optional<DetachedProgram>> find_detached(const std::string& folder, const std::string& name);

// Why a program was not started, and the exit status of `carve run`.
struct StartFailure {
  int status = 0;
  std::string message;
};

// Starts `supervisor`, the path of carve-supervise, and returns when it has executed the program. `name` is that
// of the request's slice, which must have been granted. Sets the request's directory. The supervisor keeps no
// file of this process open. If it fails, the caller must end the slice.
Result<void, StartFailure> start_detached(const std::string& folder, const std::string& name,
                                          const std::string& supervisor, SuperviseRequest request);

}  // namespace carve::runner
