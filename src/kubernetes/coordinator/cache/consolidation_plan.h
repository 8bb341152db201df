// Which slices would have to move so that devices of the cluster become empty. Nothing is moved
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
    std::vector<Device> from, to;  // The devices that the move exchanges.
    Bytes memory;                  // On each device; the largest if the parts differ.
  };
  std::vector<Move> moves;  // In an order in which each move fits.
  std::vector<Device> emptied;
  Bytes moved;
};

// Plans how `wanted` more devices become empty. Pods of several slices stay, because their slices have to be
// on one node. Requirements that only the scheduler knows are not considered.
ClusterConsolidation plan_consolidation(Cache&, unsigned wanted);

}  // namespace carve::kubernetes::coordinator
