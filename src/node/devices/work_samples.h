// The work of each process on one device, from the driver's samples (nvmlDeviceGetProcessUtilization).
//
// Measured on an H100 with driver 580.159 (docs/measurements/2026-11-26-h100.md): for each period of 200 ms
// the driver records one process and the busy percentage of the whole device. A call returns a sample for
// each process that was recorded since the given time: the time of its last record, and the sum of its
// percentages divided by the number of periods since then. So a process with a quarter of a busy device is
// recorded in a quarter of the periods, with 98. NVML's documentation describes another form: each process's
// own percentage, for all processes at one time. A device counts as having that form once two processes have
// samples of the same time.
//
// In the first form a process's part is a statistic: `at_least` and `at_most` are Chernoff bounds, which a
// true value exceeds once in 1,200,000 times.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <span>

#include "abi/nvml.h"
#include "core/work_shown.h"

namespace carve::node {

class WorkSamples {
 public:
  // Returns the time from which to request the next samples, on CLOCK_REALTIME.
  uint64_t since_us() const { return now_us_; }
  // Adds the response to a call at `now_us` about the time since since_us(). `pids` are the processes that
  // NVML lists now.
  void add(std::span<const nvmlProcessUtilizationSample_t> samples, std::span<const unsigned> pids,
           uint64_t now_us);

  // Returns the work of a process that NVML listed at the last add().
  WorkShown shown(unsigned pid) const;

 private:
  struct Answer {
    uint64_t from_us, to_us;
    std::map<unsigned, unsigned> percent;  // By pid.
    unsigned periods;                      // Periods with work, as far as the samples' times show.
  };
  struct Bounds {
    double part, at_least, at_most;
  };
  Bounds bounds(unsigned pid, uint64_t from_us) const;

  std::deque<Answer> answers_;                    // In the last `proof_window_us`, oldest first.
  std::map<unsigned, uint64_t> listed_since_us_;  // By pid.
  uint64_t now_us_ = 0;
  bool counts_each_ = false;
};

}  // namespace carve::node
