// The pods that a manifest creates. Pure.
#pragma once

#include <string>
#include <vector>

#include "wire/api/json_value.h"

namespace carve::kubernetes::cli {

struct PodDocument {
  std::string name;          // The object that contains the pod.
  unsigned replicas = 1;     // Number of pods; 1 for a DaemonSet.
  api::Json* pod = nullptr;  // Has metadata and spec.
};

// Returns the pod of a Pod, the pod template of a Deployment, StatefulSet, DaemonSet, ReplicaSet,
// ReplicationController, Job or CronJob, and the pods of all items of a List.
std::vector<PodDocument> pods_in(api::Json& document);

}  // namespace carve::kubernetes::cli
