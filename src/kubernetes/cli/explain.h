// Why a pod waits, or where a manifest would go. A cache like the coordinator's is built from what the caller
// sees. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dialects/pod/pod_settings.h"
#include "kubernetes/cli/cluster_view.h"
#include "kubernetes/coordinator/cache/cache.h"
#include "wire/api/field_error.h"

namespace carve::kubernetes::cli {

// Returns a cache of the part of the cluster that the caller sees.
coordinator::Cache cache_of(const ClusterView&);

struct Explanation {
  std::string pod;
  std::string message;             // "0/12 nodes can serve: 8 memory, ..."
  std::vector<std::string> nodes;  // Nodes that can serve it.
};

// Explains a pod of the cluster. Fails with a message if the caller does not see it.
Result<Explanation, std::string> explain_pod(const ClusterView&, const std::string& name_space,
                                             const std::string& name);

// Returns the newest note of CarveInsufficientCapacity in a list of events (events.k8s.io/v1); empty if there
// is none.
std::string newest_reason(std::string_view events_json);

// Explains the pods of manifests, all replicas of each, in their order, as the webhook would translate them.
// Fails with every error.
Result<std::vector<Explanation>, api::FieldErrors> explain_manifests(const ClusterView&,
                                                                     std::string_view manifests,
                                                                     const dialects::PodSettings&);

}  // namespace carve::kubernetes::cli
