// The results of one process or device, and the JSON object that carve-load prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carve::load {

struct WorkResult {
  uint64_t kernels_completed = 0;
  uint64_t kernel_ns = 0;        // Work completed: kernels_completed times the requested length.
  uint64_t elapsed_ns = 0;       // Duration of the timed part.
  uint64_t bytes_allocated = 0;  // Maximum held at any time, in requested bytes.
  uint64_t bytes_verified = 0;
  std::string error;  // The driver's name for the first error. Empty if there was none.
  // Latencies of kernels or requests in ns; only a sample if there were very many.
  std::vector<uint64_t> latencies;

  // Adds the result of another process or device that ran at the same time.
  void add(const WorkResult& other);
};

// Prints the result as one line of JSON on stdout.
void print(const WorkResult& result);

}  // namespace carve::load
