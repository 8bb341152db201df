// Translates a container's request for a node (fleet/mode_rule.h).
#pragma once

#include <string_view>

#include "fleet/mode_rule.h"
#include "kubernetes/format/pod_request.h"

namespace carve::kubernetes::coordinator {

// Returns the request with the isolation and policy that its slice would have on a node of this kind, or why
// the node cannot provide them. `dialect` matters because an ACK container that requests only memory is not
// placed on a node whose label promises both memory and compute (kubernetes.md 2).
Result<Request, fleet::Refusal> request_on(const kubernetes::RequestedSlice&, std::string_view dialect,
                                           const fleet::NodeKind&);

}  // namespace carve::kubernetes::coordinator
