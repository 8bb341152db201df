// The file that identifies a supervisor without its program's directory, which the program can write: the
// supervisor's process, and a lock that it holds until its program has ended. The launcher creates it in a
// folder of the controller and passes it to the supervisor as an open file. So even if a program removes
// everything in its directory, it is seen to run, is not started a second time, and can be ended.
#pragma once

#include <optional>
#include <string>

#include "os/fd.h"
#include "os/process.h"

namespace carve::runner {

// Takes the lock for this process and writes the process's id. Returns an empty descriptor if another
// supervisor holds it. `former` is the supervisor that held it before, unless another process has its number.
os::Fd hold_liveness_file(const std::string& path, std::optional<os::ProcessId>& former);

// Returns the supervisor that holds the lock; no value if there is none.
std::optional<os::ProcessId> living_supervisor(const std::string& path);

// Sends the signal to the processes of the supervisor's session, except for the supervisor itself, and to its
// children in other sessions. Returns whether there were any.
bool signal_session(const os::ProcessId& supervisor, int signal);

}  // namespace carve::runner
