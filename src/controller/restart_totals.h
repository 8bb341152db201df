// Restarts of the programs of services and applications since the controller started. The status of a service
// counts only its current replicas, so its sum decreases when a replica is replaced; these totals never do.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/objects/object_registry.h"

namespace carve::controller {

class RestartTotals {
 public:
  // Adds what the statuses show since the last call. Restarts before the first call are not counted. A deleted
  // object is forgotten. Must be called often enough to see each replica before it is replaced.
  void update(const std::vector<ObjectRegistry::Pointer>& workloads);
  uint64_t of(const std::string& uid) const;

 private:
  struct Workload {
    uint64_t total = 0;
    std::map<std::string, uint32_t> restarts;  // As of the last call, by slice.
  };

  std::map<std::string, Workload> workloads_;  // Keyed by uid.
  bool began_ = false;
};

}  // namespace carve::controller
