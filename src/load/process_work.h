// The work of one process: first memory, then kernels and copies for the requested time.
#pragma once

#include <atomic>

#include "load/load_options.h"
#include "load/work_result.h"

namespace carve::load {

// Set by SIGINT and SIGTERM to end early and report what was done so far.
inline std::atomic<bool> told_to_stop{false};
void end_early_on_signals();

// A barrier for the processes of one load, in memory that they share. No process allocates before all have
// their contexts, and none frees before all have their memory.
struct Meeting {
  std::atomic<unsigned> arrived{0};

  // Waits for the n-th meeting of `processes`. A failed process counts as arrived at every meeting that it
  // misses.
  void meet(unsigned n, unsigned processes);
};
inline constexpr unsigned meetings = 2;

WorkResult work(const Options& options, unsigned process, Meeting& meeting);

}  // namespace carve::load
