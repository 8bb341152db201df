// Measures how late a sleeping thread runs on this machine, as a running median over the arbiter's timed
// waits. On an idle machine it is 5 to 60 us; in a virtual machine whose host preempts its processors it is
// several hundred microseconds. The arbiter's waits end earlier by this much, and the device scheduler wakes
// programs before their gates open.
#pragma once

#include "share/entitlement.h"

namespace carve::share {

class WakeLatency {
 public:
  // Adds the time by which a wait ended late. A wait that ended early is not a measurement.
  void add(Ns late) {
    late = std::clamp<Ns>(late, 0, max_late);
    // Each value moves the median by 1/16 of itself, so one late wait changes little.
    const Ns step = std::max<Ns>(median_ / 16, us);
    median_ = late > median_ ? std::min(median_ + step, max_late) : std::max<Ns>(median_ - step, 0);
    invariant(median_ >= 0 && median_ <= max_late);
  }

  Ns median() const { return median_; }

  // Returns how much earlier than its time a wait ends. The thread spins for the rest.
  Ns timer_lead() const { return std::clamp(median_, min_timer_lead, max_timer_lead); }

 private:
  static constexpr Ns max_late = 1 * ms;
  static constexpr Ns min_timer_lead = 15 * us, max_timer_lead = 200 * us;

  Ns median_ = 15 * us;
};

}  // namespace carve::share
