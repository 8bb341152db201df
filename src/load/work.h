// One process's share of the load: memory first, then kernels and copies for as long as was asked.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "load/options.h"

namespace carve::load {

struct Outcome {
  uint64_t kernels_completed = 0;
  uint64_t kernel_ns = 0;        // kernels_completed times the length asked for: the work that was done.
  uint64_t elapsed_ns = 0;       // Of the timed part.
  uint64_t bytes_allocated = 0;  // The most held at once, as asked for.
  uint64_t bytes_verified = 0;
  std::string error;                // The driver's name for the first refusal; empty: none.
  std::vector<uint64_t> latencies;  // Of kernels or requests, ns; a sample where there were very many.

  void add(const Outcome& other);  // Of another process or device that ran at the same time.
};

// Set by SIGINT and SIGTERM: end early, and say what was done so far.
inline std::atomic<bool> told_to_stop{false};

// Where the processes of one load wait for each other: none allocates before all have their contexts, none
// lets go before all have what they asked for. Lies in memory that they share.
struct Meeting {
  std::atomic<unsigned> arrived{0};

  // Waits for the n-th meeting of `processes`; one that failed comes to every meeting it will miss.
  void meet(unsigned n, unsigned processes);
};
inline constexpr unsigned meetings = 2;

Outcome work(const Options& options, unsigned process, Meeting& meeting);

}  // namespace carve::load
