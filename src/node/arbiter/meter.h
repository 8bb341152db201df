// From what a slice's processes wrote (wire/shm/work.h) to what share/ wants to know of it. Pure but for the
// loads: `now` is an argument.
//
// How long work was on the device follows from three sources, the best that applies:
// - a thread that synchronises says exactly when it had work (BusyWord);
// - one that never does is seen to be idle when the device has written all its markers: it was busy for as
//   long as what it had submitted was estimated to take, and no longer than until now;
// - the last few launches, that no marker follows, are over when their estimate has passed twice.
// Every word may be a lie: all is clipped to the time that passed.
#pragma once

#include <map>
#include <span>

#include "share/device_scheduler.h"
#include "wire/shm/layout.h"

namespace carve::node {

class Meter {
 public:
  // What the processes in `slots` did on the slice's device `device` since the last call.
  share::Observation read(std::span<const shm::ProcessWork> work, std::span<const unsigned> slots,
                          unsigned device, share::Ns now);

  // As of the last read.
  unsigned threads() const { return threads_; }  // Launching ones, of the process that has most.
  share::Ns waiting_since() const {
    return waiting_since_;
  }  // The longest that any stands at the gate; 0: none.

 private:
  struct Process {
    uint64_t busy = 0, submitted = 0;  // Sums over its threads.
    uint64_t left = 0;
    share::Ns changed = 0;  // When `submitted` was first seen as it is.
    bool in_flight = false;
    bool open = false;  // A thread says that it is busy.
    uint64_t seen = 0;  // Counts reads.
  };
  struct Sum;
  static Sum sum(const shm::ProcessWork&, unsigned device, share::Ns now);

  std::map<unsigned, Process> processes_;
  uint64_t reads_ = 0;
  share::Ns last_ = 0;
  share::Ns idle_since_ = 0;
  unsigned threads_ = 0;
  share::Ns waiting_since_ = 0;
};

}  // namespace carve::node
