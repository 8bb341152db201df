// Arrivals that never leave, until more was asked for than there is: the protocol of the FGD paper.
//
// The pods, sorted by name, are shuffled; then clones of uniformly chosen ones are appended until one more
// would take the demand past 130 % of the cluster's cards (where the trace has more already, uniformly chosen
// pods are removed). They arrive one at a time; one that does not fit is dropped and counts as arrived.
#pragma once

#include <array>

#include "replay/trace.h"

namespace carve::replay {

inline constexpr std::array<unsigned, 5> marks = {80, 90, 95, 100,
                                                  130};  // Percent of the cards asked for so far.

// Failures are counted by what was asked: no card, a part of one, one, 2, 3-4, 5 and more.
inline constexpr std::array<std::string_view, 6> class_names = {"cpu", "part", "1", "2", "4", "8"};
unsigned class_of(const Pod&);

struct Outline {                                 // Of one replay.
  std::array<double, marks.size()> allocated{};  // Percent of the cluster, at each mark.
  std::array<std::array<uint64_t, class_names.size()>, marks.size()> failed{};
  std::array<std::array<uint64_t, class_names.size()>, marks.size()> arrived{};
  uint64_t decisions = 0;
  double seconds = 0;  // Of deciding alone.
  uint64_t bytes_per_node = 0;
  uint64_t kinds = 0;
};

// The order of arrivals: positions in trace.pods.
std::vector<uint32_t> arrivals(const Trace&, uint64_t cards, uint64_t seed);

// known: the policy is told the trace's requests as the workload to expect, as the paper does. Otherwise a
// policy that can learns it from the arrivals.
Outline inflate(const Cluster&, const Trace&, Strategy, bool known, uint64_t seed);

}  // namespace carve::replay
