// The pods that a manifest creates. Pure.
#pragma once

#include <string>
#include <vector>

#include "wire/api/json_value.h"

namespace carve::kubectl {

struct PodDocument {
  std::string name;          // Of the object that has the pod.
  api::Json* pod = nullptr;  // With metadata and spec.
};

// Returns the pod of a Pod, the template of a Deployment, StatefulSet, DaemonSet, ReplicaSet,
// ReplicationController, Job or CronJob, and those of a List's items.
std::vector<PodDocument> pods_in(api::Json& document);

}  // namespace carve::kubectl
