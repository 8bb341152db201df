// Compares the driver-reported memory of a slice with its charges.
//
// A call that allocates memory charges it. Other memory (modules, local memory, heaps, the rest of a 2 MiB
// block) appears only afterwards, in the bytes that NVML reports for each process (`truth`). The excess of
// `truth` over the charges is *growth*. It is charged to the slice on the agent's own lane and reduces what
// the slice can still allocate. This file computes the growth; wire/shm/budget.h makes the change.
//
// The two figures cannot be read at the same instant. So a reading counts only if it is quiet, which means
// that the budget word has the same tag before and after the NVML sample: no byte was charged or released in
// between. For a slice that is never quiet, the growth is the smallest excess over the larger of its two
// charges in several readings.
#pragma once

#include <algorithm>
#include <cstdint>

namespace carve::node {

struct Reading {
  uint64_t used_before = 0, version_before = 0;  // The bytes in use when the sample was requested,
  uint64_t used_after = 0, version_after = 0;    // and when it arrived.
  uint64_t truth = 0;                            // Bytes that NVML reports for the slice's processes.
};

class Growth {
 public:
  static constexpr int restless_readings = 5;

  // Returns the growth to charge now, in bytes. `charged_growth` is what is already charged.
  uint64_t wanted(uint64_t charged_growth, const Reading& r) {
    if (r.version_before == r.version_after && r.used_before == r.used_after) {
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
