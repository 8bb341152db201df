// What the coordinator finds wrong in the cluster's objects, every 60 s: devices that are granted beyond what
// they have, ledgers of nodes that differ from the books, annotations that cannot be read. It only reports:
// no pod is evicted. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cluster/books/books.h"

namespace carve::cluster {

struct Finding {
  std::string kind;  // Of the object: "Node", "Pod".
  std::string name;  // Of a pod: NAMESPACE/NAME.
  std::string reason, action, sentence;
};

struct ClusterFindings {
  std::vector<Finding> findings;
  size_t overcommitted_devices = 0;
  size_t drifting_devices = 0;
};

// `nodes`: by uid, with their annotations.
ClusterFindings check_cluster(const Books&, const kube::ObjectsByUid& nodes);

}  // namespace carve::cluster
