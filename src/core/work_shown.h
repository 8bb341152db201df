// The driver's report about a process's kernels on a device, which the process cannot falsify.
#pragma once

#include <algorithm>
#include <cstdint>

namespace carve {

struct WorkShown {
  unsigned percent = 0;  // Percent of the time in the last seconds.
  // The next fields cover the last `window_ns`. If that is 0, the driver counts the work of each process, and
  // both bounds equal the value of its last period.
  bool worked = false;    // The driver named the process.
  unsigned average = 0;   // Percent of the time.
  unsigned at_least = 0;  // Bounds of the true percentage.
  unsigned at_most = 0;
  int64_t window_ns = 0;

  // Returns the values for two processes together.
  friend WorkShown operator+(const WorkShown& a, const WorkShown& b) {
    const auto sum = [](unsigned x, unsigned y) { return std::min(100u, x + y); };
    return {sum(a.percent, b.percent),   a.worked || b.worked,      sum(a.average, b.average),
            sum(a.at_least, b.at_least), sum(a.at_most, b.at_most), std::max(a.window_ns, b.window_ns)};
  }
  friend bool operator==(const WorkShown&, const WorkShown&) = default;
};

}  // namespace carve
