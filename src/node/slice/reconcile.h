// The driver's truth against a slice's charges.
//
// Explicit allocations are charged by the call that makes them. Other memory (modules, local memory, heaps,
// the rest of a 2 MiB block) is seen only afterwards, in what NVML says each process holds: `truth`. What
// truth shows beyond the charges is *growth* and is charged to the slice on the agent's own lane, so that it
// can allocate so much less. This page decides how large the growth is; wire/shm/budget.h makes the change.
//
// The two figures are never read at one instant, so a reading counts only when it is quiet: the budget word
// had the same tag before and after NVML was asked, so nothing was charged or given back between. A slice
// that never stands still is measured by the least excess of several readings over the larger of its two
// charges.
#pragma once

#include <algorithm>
#include <cstdint>

namespace carve::node {

struct Reading {
  uint64_t used_before = 0, tag_before = 0;  // The budget word when the sample was asked for,
  uint64_t used_after = 0, tag_after = 0;    // and when it had come.
  uint64_t truth = 0;                        // What NVML says the slice's processes hold, bytes.
};

class Growth {
 public:
  static constexpr int restless_readings = 5;

  // How much growth should be charged now, given how much is.
  uint64_t wanted(uint64_t charged_growth, const Reading& r) {
    if (r.tag_before == r.tag_after && r.used_before == r.used_after) {
      restless_ = 0;
      const uint64_t called = r.used_after - std::min(r.used_after, charged_growth);
      return r.truth - std::min(r.truth, called);
    }
    const uint64_t excess = r.truth - std::min(r.truth, std::max(r.used_before, r.used_after));
    least_excess_ = restless_ == 0 ? excess : std::min(least_excess_, excess);
    if (++restless_ < restless_readings) return charged_growth;
    restless_ = 0;
    return charged_growth + least_excess_;
  }

 private:
  int restless_ = 0;
  uint64_t least_excess_ = 0;
};

}  // namespace carve::node
