// Plans which slices would have to move so that devices of the cluster become empty. Nothing is moved
// (place/consolidation.h).
#pragma once

#include <string>
#include <vector>

#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

struct ClusterConsolidation {
  struct Device {
    std::string node;
    unsigned device = 0;
  };
  struct Move {
    std::string pod;               // NAMESPACE/NAME; this is its only slice.
    std::vector<Device> from, to;  // Before and after the move.
    Bytes memory;                  // On each device; the largest amount if the parts differ.
  };
  std::vector<Move> moves;  // In an order in which each move fits.
  std::vector<Device> emptied;
  Bytes moved;
};

// Plans how to empty `wanted` more devices. Pods with several slices are not moved, because all slices of a
// pod must be on one node. Constraints that only the scheduler knows are ignored.
ClusterConsolidation plan_consolidation(Cache&, unsigned wanted);

}  // namespace carve::kubernetes::coordinator
