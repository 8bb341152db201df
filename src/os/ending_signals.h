// The signals that end a program in an orderly way: SIGTERM and SIGINT.
#pragma once

#include "os/fd.h"

namespace carve::os {

// Makes the signals readable from a descriptor, in this thread and the threads that it starts. SIGPIPE is
// ignored, so that a closed connection does not end the program. Must be called before the process has other
// threads.
Fd take_ending_signals();

}  // namespace carve::os
