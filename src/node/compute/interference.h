// Sums up, over the last minute, how long one client of an arbiter worked, waited and was throttled, and which
// slices held the device while it waited. Keeps sums of 5 s, so that its size does not depend on how often the
// clients switch. Has no clock.
#pragma once

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "node/agent/compute_figures.h"
#include "share/entitlement.h"

namespace carve::node {

class Interference {
 public:
  static constexpr share::Ns window = 60 * share::second, bucket = 5 * share::second;
  // A slice that hardly works has no meaningful slowdown.
  static constexpr uint32_t max_slowdown_bp = 10'000'000;

  // Adds times that have passed since the last call. Calls must be in the order of `now`.
  void add(share::Ns now, share::Ns busy, share::Ns waiting, share::Ns throttled) {
    Bucket& last = bucket_at(now);
    last.busy += busy;
    last.waiting += waiting + throttled;
  }
  // Adds time in which the slice `holder` held the device.
  void add_wait_for(share::Ns now, uint64_t holder, share::Ns time) {
    if (time > 0) add_to(bucket_at(now).holders, holder, time);
  }

  // Returns the time that the last minute's work took here, over the time that it takes on the device alone,
  // in basis points; 0 if there was no work.
  uint32_t slowdown_bp(share::Ns now) const {
    share::Ns busy = 0, waiting = 0;
    for (const Bucket& one : buckets_)
      if (one.begin > now - window - bucket) {
        busy += one.busy;
        waiting += one.waiting;
      }
    if (busy <= 0) return 0;
    const double ratio = static_cast<double>(busy + waiting) / static_cast<double>(busy);
    return static_cast<uint32_t>(std::min<double>(ratio * 10'000, max_slowdown_bp));
  }
  // Returns the slices that held the device while the client waited in the last minute, the longest first.
  std::vector<WaitFor> waits(share::Ns now) const {
    std::vector<WaitFor> out;
    for (const Bucket& one : buckets_)
      if (one.begin > now - window - bucket)
        for (const WaitFor& wait : one.holders)
          add_to(out, wait.slice, static_cast<share::Ns>(wait.waiting_ns));
    std::ranges::sort(out, std::ranges::greater(), &WaitFor::waiting_ns);
    return out;
  }

 private:
  struct Bucket {
    share::Ns begin = 0;
    share::Ns busy = 0, waiting = 0;
    std::vector<WaitFor> holders;
  };

  static void add_to(std::vector<WaitFor>& all, uint64_t slice, share::Ns time) {
    const auto found = std::ranges::find(all, slice, &WaitFor::slice);
    WaitFor& wait = found == all.end() ? all.emplace_back(WaitFor{.slice = slice}) : *found;
    wait.waiting_ns += static_cast<uint64_t>(time);
  }

  Bucket& bucket_at(share::Ns now) {
    if (buckets_.empty() || now >= buckets_.back().begin + bucket)
      buckets_.push_back({.begin = now - now % bucket});
    while (buckets_.front().begin + bucket <= now - window) buckets_.pop_front();
    return buckets_.back();
  }

  std::deque<Bucket> buckets_;  // At most window / bucket + 2.
};

}  // namespace carve::node
