// What a container's request becomes on a node: an amount that depends on nothing but the request and the
// node's settings.
#pragma once

#include <string_view>

#include "cluster/snapshot/cluster_node.h"
#include "core/request.h"
#include "wire/kube/pod_request.h"

namespace carve::cluster {

// Returns the request with the isolation and the policy that its slice would have on a node of this kind, or
// a sentence: the node does not give what the request names. `dialect`: a container that asks for memory
// alone in ACK's words does not go to a node whose label promises both memory and compute (kubernetes.md 2).
Result<Request, std::string> request_on(const kube::SliceAmounts&, std::string_view dialect, const NodeKind&);

}  // namespace carve::cluster
