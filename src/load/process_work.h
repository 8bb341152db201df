// The work of one process: first it allocates memory, then it runs kernels and copies for the requested time.
#pragma once

#include <atomic>

#include "load/load_options.h"
#include "load/work_result.h"

namespace carve::load {

// Set by SIGINT and SIGTERM to end early and report what was done so far.
inline std::atomic<bool> told_to_stop{false};
void end_early_on_signals();

// A barrier for the processes of one load, in shared memory. No process allocates before all have created
// their contexts, and none frees before all have allocated their memory.
struct Meeting {
  std::atomic<unsigned> arrived{0};

  // Waits until `processes` processes have reached the n-th meeting. A failed process counts as present at
  // every meeting that it misses.
  void meet(unsigned n, unsigned processes);
};
inline constexpr unsigned meetings = 2;

WorkResult work(const Options& options, unsigned process, Meeting& meeting);

}  // namespace carve::load
