// Replays pods that never leave, until more has been requested than the cluster has. This is the protocol of
// the FGD paper.
//
// The pods, sorted by name, are shuffled. Then copies of uniformly chosen pods are appended until another one
// would raise the demand above 130 % of the cluster's devices. If the trace already has more, uniformly
// chosen pods are removed. The pods arrive one at a time. A pod that does not fit is dropped, but counts as
// arrived.
#pragma once

#include <array>

#include "replay/setup.h"

namespace carve::replay {

// The marks, in percent of the devices requested so far.
inline constexpr std::array<unsigned, 5> marks = {80, 90, 95, 100, 130};

// A point for each percent from 0 to 130.
inline constexpr unsigned curve_points = 131;

struct Inflated {                                // The result of one replay.
  std::array<double, marks.size()> allocated{};  // Percent of the cluster in use, at each mark.
  std::array<std::array<uint64_t, class_names.size()>, marks.size()> failed{};
  std::array<std::array<uint64_t, class_names.size()>, marks.size()> arrived{};
  std::array<double, curve_points> curve{};  // Percent of the cluster in use.
  Effort effort;
};

// Returns the order of arrivals, as positions in trace.pods.
std::vector<uint32_t> arrivals(const Trace&, uint64_t devices, uint64_t seed);

// Replays the trace. With `known`, the strategy gets the trace's requests as its workload model, as in the
// paper. Otherwise, a strategy that is able to derives the model from the arrivals.
Inflated inflate(const Cluster&, const Trace&, Strategy, bool known, uint64_t seed);

}  // namespace carve::replay
