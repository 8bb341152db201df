// Explains why a pod waits, or where the pods of a manifest would run, with a cache like the coordinator's
// that is built from the objects that the caller can read. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dialects/pod/pod_settings.h"
#include "kubernetes/cli/cluster_view.h"
#include "kubernetes/coordinator/cache/cache.h"
#include "wire/api/field_error.h"

namespace carve::kubernetes::cli {

// Builds a cache from the objects that the caller can read.
coordinator::Cache cache_of(const ClusterView&);

struct Explanation {
  std::string pod;
  std::string message;             // "0/12 nodes can serve: 8 memory, ..."
  std::vector<std::string> nodes;  // Nodes that can serve the pod.
};

// Explains a pod of the cluster. Fails with a message if the caller cannot read it.
Result<Explanation, std::string> explain_pod(const ClusterView&, const std::string& name_space,
                                             const std::string& name);

// Returns the note of the newest CarveInsufficientCapacity event in a list (events.k8s.io/v1). Empty if there
// is none.
std::string newest_reason(std::string_view events_json);

// Explains all replicas of the pods in manifests, in their order, as the webhook would translate them. Fails
// with every error.
Result<std::vector<Explanation>, api::FieldErrors> explain_manifests(const ClusterView&,
                                                                     std::string_view manifests,
                                                                     const dialects::PodSettings&);

}  // namespace carve::kubernetes::cli
