// Translates a container's request for a node. The result depends only on the request and the node's
// settings.
#pragma once

#include <string_view>

#include "core/amounts.h"
#include "kubernetes/coordinator/snapshot/cluster_node.h"
#include "kubernetes/format/pod_request.h"

namespace carve::kubernetes::coordinator {

// Returns the request with the isolation and the policy that its slice would have on a node of this kind, or
// a message if the node cannot provide what it names. `dialect`: an ACK container that requests only memory
// does not go to a node whose label promises both memory and compute (kubernetes.md 2).
Result<Request, std::string> request_on(const kubernetes::RequestedSlice&, std::string_view dialect,
                                        const NodeKind&);

}  // namespace carve::kubernetes::coordinator
