// Temporarily removes or places pods in the cache, to evaluate a decision. The destructor restores the cache.
#pragma once

#include <optional>
#include <vector>

#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

class AssumedPods {
 public:
  explicit AssumedPods(Cache& cache) : cache_(cache) {}
  AssumedPods(const AssumedPods&) = delete;
  AssumedPods& operator=(const AssumedPods&) = delete;
  ~AssumedPods();

  // Assumes that the pod's slices are gone.
  void remove(const CachedPod&);
  // Assumes that the pod, which has no slices, has been given these.
  void place(const CachedPod&, kubernetes::PodSlices);

 private:
  struct Earlier {
    const CachedPod* pod;
    std::optional<kubernetes::PodSlices> slices;
    bool is_reserved;
  };
  Cache& cache_;
  std::vector<Earlier> earlier_;  // In the order of the assumptions.
};

}  // namespace carve::kubernetes::coordinator
