// Runs the load in as many processes as `--processes` requests. They allocate and launch at the same time.
#pragma once

#include "load/load_options.h"
#include "load/work_result.h"

namespace carve::load {

// Forks the processes and waits for all of them. Returns the sum of their results; a process that was killed
// is an error. With one process, nothing is forked, and the work is done in this process.
WorkResult work_in_processes(const Options& options);

}  // namespace carve::load
