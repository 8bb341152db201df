// A pod, read from the cluster's objects: its containers' requests and slices.
#pragma once

#include <optional>
#include <string>

#include "kubernetes/api/answers.h"
#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes::coordinator {

struct ClusterPod {
  std::string uid;
  std::string name_space;
  std::string name;
  std::optional<kubernetes::PodRequest> request;  // No value if the pod has no readable request.
  std::optional<kubernetes::PodSlices> slices;    // No value if the pod is not placed.
  bool is_deleting = false;
  uint64_t created = 0;  // Creation time, as in kubernetes::ObjectMeta.
  std::string problem;   // Why a part of the pod could not be read.

  std::string full_name() const { return name_space + "/" + name; }
};

ClusterPod read_pod(const kubernetes::ObjectMeta&);

}  // namespace carve::kubernetes::coordinator
