// The file by which a supervisor is known without its program's directory, which the program can write: which
// process the supervisor is, and a lock that it holds until its program has ended. The launcher makes it in a
// folder of the controller and hands it to the supervisor as an open file, so a program can remove all that
// is in its directory and is still seen to run, is not started a second time, and can be ended.
#pragma once

#include <optional>
#include <string>

#include "os/fd.h"
#include "os/process.h"

namespace carve::runner {

// Takes the lock for this process and writes which process it is. Returns an empty descriptor if another
// supervisor holds it. `former`: the supervisor that held it before, if its number is not that of another
// process.
os::Fd hold_liveness_file(const std::string& path, std::optional<os::ProcessId>& former);

// Returns the supervisor that holds the lock; no value if there is none.
std::optional<os::ProcessId> living_supervisor(const std::string& path);

// Sends the signal to the processes of the supervisor's session, but for the supervisor itself, and to its
// children in other sessions. Returns whether there was one.
bool signal_session(const os::ProcessId& supervisor, int signal);

}  // namespace carve::runner
