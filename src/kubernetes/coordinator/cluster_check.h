// The coordinator's check of the cluster's objects, which runs every 60 s. It finds overcommitted devices,
// node ledgers that differ from the cache, and unreadable annotations. It only reports and evicts no pod.
// Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

struct Finding {
  std::string kind;  // The object's kind: "Node", "Pod".
  std::string name;  // NAMESPACE/NAME for a pod.
  std::string reason, action, message;
};

struct ClusterFindings {
  std::vector<Finding> findings;
  size_t overcommitted_devices = 0;
  size_t drifting_devices = 0;
};

// Returns all findings. `nodes` are by uid.
ClusterFindings check_cluster(const Cache&, const kubernetes::ObjectsByUid& nodes);

}  // namespace carve::kubernetes::coordinator
