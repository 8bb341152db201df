// A file that identifies a supervisor even if the program has changed its own directory: it contains the
// supervisor's process id, and the supervisor holds a lock on it until the program has ended. The launcher
// creates it in a folder of the controller and passes it to the supervisor as an open file. So even if a
// program removes everything in its directory, it still counts as running, is not started a second time, and
// can be stopped.
#pragma once

#include <optional>
#include <string>

#include "os/fd.h"
#include "os/process.h"

namespace carve::runner {

// Takes the lock for this process and writes its process id. Returns an empty descriptor if another
// supervisor holds the lock. `former` receives the supervisor that held the lock before, unless its pid now
// belongs to another process.
os::Fd hold_liveness_file(const std::string& path, std::optional<os::ProcessId>& former);

// Returns the supervisor that holds the lock, or no value if none does.
std::optional<os::ProcessId> living_supervisor(const std::string& path);

// Sends the signal to the processes of the supervisor's session, except the supervisor itself, and to its
// children in other sessions. Returns whether there were any.
bool signal_session(const os::ProcessId& supervisor, int signal);

}  // namespace carve::runner
