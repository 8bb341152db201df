// Why a pod waits, or where a manifest would go: the coordinator's books, made from what the caller sees.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/books/books.h"
#include "fronts/pod/pod_settings.h"
#include "kubectl/cluster_view.h"
#include "wire/api/field_error.h"

namespace carve::kubectl {

// Returns the coordinator's books, as far as the caller sees the cluster.
cluster::Books books_of(const ClusterView&);

struct Explanation {
  std::string pod;
  std::string sentence;            // "0/12 nodes can serve: 8 memory, ..."
  std::vector<std::string> nodes;  // That can serve it.
};

// Explains a pod of the cluster. Fails with a sentence if the caller does not see it.
Result<Explanation, std::string> explain_pod(const ClusterView&, const std::string& name_space,
                                             const std::string& name);

// Explains the pods of manifests, as the webhook would translate them. Fails with every error.
Result<std::vector<Explanation>, api::FieldErrors> explain_manifests(const ClusterView&,
                                                                     std::string_view manifests,
                                                                     const fronts::PodSettings&);

}  // namespace carve::kubectl
