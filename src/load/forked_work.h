// The load in as many processes as `--processes` requests. They allocate and launch at once.
#pragma once

#include "load/load_options.h"
#include "load/work_result.h"

namespace carve::load {

// Forks the processes and waits for all of them. Returns the sum of their results; a process that was killed
// is an error. One process is this one: nothing is forked.
WorkResult work_in_processes(const Options& options);

}  // namespace carve::load
