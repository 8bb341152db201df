// Converts the words that a slice's processes wrote (wire/shm/work.h) into an observation for share/. Has no
// side effects; `now` is an argument.
//
// The busy time on the device comes from three sources, of which the best available one is used:
// - a thread that synchronises writes exactly when it had work (BusyWord);
// - a thread that never synchronises is idle when the device has written all its fences; it was busy for the
//   estimate of its submitted work, at most until now;
// - the last launches, after the last fence, end when twice their estimate has passed. In a process with one
//   stream they also end with a fence that another thread inserted after them.
// A process can write false values, so all results are clipped to the elapsed time.
#pragma once

#include <array>
#include <map>
#include <span>

#include "share/device_scheduler.h"
#include "wire/shm/layout.h"

namespace carve::node {

class Meter {
 public:
  // Returns the work of the processes in `slots` on the slice's device `device` since the last call.
  share::Observation read(std::span<const shm::ProcessWork> work, std::span<const unsigned> slots,
                          unsigned device, share::Ns now);

  // Figures as of the last read.
  unsigned threads() const { return threads_; }  // Largest number of launching threads in one process.
  share::Ns waiting_since() const {
    return waiting_since_;
  }  // Start of the longest current wait at the gate, or 0.

 private:
  struct Process {
    uint64_t busy = 0, submitted = 0;  // Sums over the process's threads.
    uint64_t left = 0;
    struct Thread {
      uint64_t submitted = 0;
      share::Ns changed = 0;  // Time of the last change of `submitted`.
      uint64_t fenced = 0;    // Sum of the streams' fences at that time.
    };
    std::array<Thread, shm::work_threads> threads;
    bool in_flight = false;
    bool open = false;  // Whether a thread reports that it is busy.
    uint64_t seen = 0;  // Number of the last read.
  };
  struct Sum;
  static bool may_run(Process::Thread&, uint64_t submitted, uint64_t unfenced, const Sum&, share::Ns now);
  static Sum sum(const shm::ProcessWork&, unsigned device, share::Ns now, Process&);

  std::map<unsigned, Process> processes_;
  uint64_t reads_ = 0;
  share::Ns last_ = 0;
  share::Ns idle_since_ = 0;
  unsigned threads_ = 0;
  share::Ns waiting_since_ = 0;
};

}  // namespace carve::node
