// Replays pods that arrive and leave again, to find the steady state of a cluster. Pods chosen uniformly from
// the trace arrive with exponential gaps, stay for their lifetime, and leave; a pod that does not fit is
// lost. The mean gap is chosen such that the devices requested at any time are on average the fraction `load`
// of the cluster's devices. The result is the demand that is lost after the cluster has filled.
#pragma once

#include "replay/setup.h"

namespace carve::replay {

enum class Lifetimes {
  exponential,  // A mean of one hour for every pod.
  trace,        // The pod's own lifetime: deletion_time - creation_time.
};

struct ChurnPlan {
  unsigned load_permille = 950;
  Lifetimes lifetimes = Lifetimes::exponential;
  static constexpr uint64_t any_length = uint64_t{1} << 40;
  uint64_t longest_seconds = any_length;  // Maximum of the trace's lifetimes; longer ones are cut.
  uint64_t warmup = 40'000;               // Arrivals that are not counted.
  uint64_t counted = 100'000;             // Number of arrivals after them that are counted.
};

struct Churned {
  // By class: for pods with devices, thousandths of a device; for other pods, the number of pods.
  std::array<uint64_t, class_names.size()> asked{};
  std::array<uint64_t, class_names.size()> lost{};
  Effort effort;

  double lost_percent() const;  // Percent of the demand for devices.
  double lost_percent(size_t of_class) const;
};

// Replays the trace. Fails if lifetimes are needed but the trace has none.
Outcome<Churned> churn(const Cluster&, const Trace&, Strategy, bool known, const ChurnPlan&, uint64_t seed);

}  // namespace carve::replay
