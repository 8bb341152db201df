// The options of carve-load, in bytes and nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "load/cuda_driver.h"

namespace carve::load {

enum class Pattern { once, churn, fill };
enum class Kind { device, managed, pitched };
enum class Launch { plain, extended, cooperative };

inline constexpr int all_devices = -1;

struct Options {
  uint64_t allocate = 0;    // Bytes per process and device.
  uint64_t chunk = 0;       // Bytes per allocation; 0 means a single allocation.
  uint64_t smallest = 512;  // Bytes at which "fill" stops halving.
  Pattern pattern = Pattern::once;
  Kind kind = Kind::device;
  bool touch = true;  // Write every allocated byte, read it back and compare.

  std::optional<uint64_t> kernel_ns;  // Length of each kernel. Absent means no kernels.
  unsigned grid = 0;                  // Blocks per kernel; 0 means enough to fill any device.
  unsigned block = 128;               // Threads per block.
  Launch launch = Launch::plain;
  bool graphs = false;
  bool sync = true;  // Wait for each kernel before launching the next one.
  unsigned streams = 1;
  double request_rate = 0;  // Requests per second, with Poisson arrivals; 0 means one after the other.
  uint64_t copy = 0;        // Bytes copied to the device and back around each kernel.

  double seconds = 0;  // Duration of the kernels, of the churn, or of holding the memory without work.
  unsigned processes = 1;
  int device = 0;  // Device ordinal, or all_devices.
  uint64_t seed = 1;
  Lookup lookup = Lookup::dlsym;
};

// Parses the command line. Returns the exit status if there is nothing left to do, which is after printing
// the help or the reason why an option is invalid.
std::optional<int> parse_options(int argc, char** argv, Options& options);

}  // namespace carve::load
