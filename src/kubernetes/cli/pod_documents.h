// The pods that a manifest creates. Pure.
#pragma once

#include <string>
#include <vector>

#include "wire/api/json_value.h"

namespace carve::kubernetes::cli {

struct PodDocument {
  std::string name;          // The object that contains the pod.
  unsigned replicas = 1;     // Number of pods; those of a DaemonSet count as one.
  api::Json* pod = nullptr;  // Has metadata and spec.
};

// Returns the pod of a Pod, the template of a Deployment, StatefulSet, DaemonSet, ReplicaSet,
// ReplicationController, Job or CronJob, and those of a List's items.
std::vector<PodDocument> pods_in(api::Json& document);

}  // namespace carve::kubernetes::cli
