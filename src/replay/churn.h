// Arrivals that leave again: the steady state of a cluster. Pods chosen uniformly from the trace arrive at
// random (exponential gaps), stay for a time of their own, and leave; one that does not fit is lost. The gap
// is chosen so that the devices asked for at a moment are on average `load` of the cluster's. What counts is
// the demand that is lost once the cluster has filled.
#pragma once

#include "replay/setup.h"

namespace carve::replay {

enum class Lifetimes {
  exponential,  // Mean one hour for every pod.
  trace,        // The pod's own: deletion_time - creation_time.
};

struct ChurnPlan {
  unsigned load_permille = 950;
  Lifetimes lifetimes = Lifetimes::exponential;
  static constexpr uint64_t any_length = uint64_t{1} << 40;
  uint64_t longest_seconds = any_length;  // Of the trace's own: a longer one ends then.
  uint64_t warmup = 40'000;               // Arrivals that are not counted.
  uint64_t counted = 100'000;             // Those after them that are.
};

struct Churned {
  // By class: thousandths of a device for those that ask for devices, pods for those that do not.
  std::array<uint64_t, class_names.size()> asked{};
  std::array<uint64_t, class_names.size()> lost{};
  Effort effort;

  double lost_percent() const;  // Of the demand for devices.
  double lost_percent(size_t of_class) const;
};

// Refused where the trace tells no lifetimes and they are asked for.
Outcome<Churned> churn(const Cluster&, const Trace&, Strategy, bool known, const ChurnPlan&, uint64_t seed);

}  // namespace carve::replay
