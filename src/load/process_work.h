// The work of one process: memory first, then kernels and copies for the requested time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "load/load_options.h"

namespace carve::load {

struct WorkResult {
  uint64_t kernels_completed = 0;
  uint64_t kernel_ns = 0;        // kernels_completed times the requested length: the completed work.
  uint64_t elapsed_ns = 0;       // Duration of the timed part.
  uint64_t bytes_allocated = 0;  // Maximum held at once, in requested bytes.
  uint64_t bytes_verified = 0;
  std::string error;  // The driver's name for the first refusal; empty: none.
  // Latencies of kernels or requests in ns; a sample if there were very many.
  std::vector<uint64_t> latencies;

  // Adds the outcome of another process or device that ran at the same time.
  void add(const WorkResult& other);
};

// Set by SIGINT and SIGTERM: end early, and report what was done so far.
inline std::atomic<bool> told_to_stop{false};

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
