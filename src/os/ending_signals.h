// The signals that end a program in order: SIGTERM, SIGINT.
#pragma once

#include "os/fd.h"

namespace carve::os {

// Makes the signals readable from a descriptor, for this thread and those that it starts. SIGPIPE is ignored,
// so a closed connection does not end the program. Called before the process has threads.
Fd take_ending_signals();

}  // namespace carve::os
