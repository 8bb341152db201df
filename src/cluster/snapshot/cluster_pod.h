// A pod as the cluster's objects say it: what its containers asked for and where their slices are.
#pragma once

#include <optional>
#include <string>

#include "kube/answers.h"
#include "wire/kube/pod_request.h"
#include "wire/kube/pod_slices.h"

namespace carve::cluster {

struct ClusterPod {
  std::string uid;
  std::string name_space;
  std::string name;
  std::optional<kube::PodRequest> request;  // None: it has no readable one.
  std::optional<kube::PodSlices> slices;    // None: it is not placed.
  bool is_deleting = false;
  uint64_t created = 0;  // As kube::ObjectMeta has it.
  std::string problem;   // What could not be read.

  std::string full_name() const { return name_space + "/" + name; }
};

ClusterPod read_pod(const kube::ObjectMeta&);

}  // namespace carve::cluster
