// Computes the work of each process on one device from the driver's samples
// (nvmlDeviceGetProcessUtilization).
//
// Measured on an H100 with driver 580.159 (docs/measurements/2026-11-26-h100.md): for each period of 200 ms
// the driver records one process and the busy percentage of the whole device. A call returns a sample for
// each process recorded since the given time: the time of its last record, and the sum of its percentages
// divided by the number of periods since then. So a process that uses a quarter of a busy device is recorded
// in a quarter of the periods, with 98 %. NVML's documentation describes another form, in which all processes
// have samples with their own percentages for the same time. A device is assumed to use that form once two
// processes have samples with the same time.
//
// In the first form a process's part is an estimate: `at_least` and `at_most` are Chernoff bounds, which a
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
  // Returns the time since which to request the next samples, on CLOCK_REALTIME.
  uint64_t since_us() const { return now_us_; }
  // Adds the result of a call at `now_us` about the time since since_us(). `pids` are the processes that NVML
  // currently lists.
  void add(std::span<const nvmlProcessUtilizationSample_t> samples, std::span<const unsigned> pids,
           uint64_t now_us);

  // Returns the work of a process that NVML listed at the last add().
  WorkShown shown(unsigned pid) const;

 private:
  struct Answer {
    uint64_t from_us, to_us;
    std::map<unsigned, unsigned> percent;  // By pid.
    unsigned periods;                      // Number of periods with work, from the samples' times.
  };
  struct Bounds {
    double part, at_least, at_most;
  };
  Bounds bounds(unsigned pid, uint64_t from_us) const;

  std::deque<Answer> answers_;                    // Answers of the last `proof_window_us`, oldest first.
  std::map<unsigned, uint64_t> listed_since_us_;  // By pid.
  uint64_t now_us_ = 0;
  bool counts_each_ = false;
};

}  // namespace carve::node
