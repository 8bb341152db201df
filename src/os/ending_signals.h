// The signals that end a program in an orderly way: SIGTERM, SIGINT.
#pragma once

#include "os/fd.h"

namespace carve::os {

// Makes the signals readable from a descriptor, for this thread and those that it starts. SIGPIPE is ignored,
// so a closed connection does not end the program. Call it before the process has threads.
Fd take_ending_signals();

}  // namespace carve::os
