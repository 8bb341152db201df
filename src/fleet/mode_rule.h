// The mode rule: what a request becomes on a node, or why the node's settings do not allow it. The result
// depends only on the request and on the node's kind.
//
//   mode                  grants                               isolation if the request names none
//   memory-and-compute    all but isolation none               memory+compute with a share, otherwise memory
//   memory                slices without a share               memory
//   none                  slices without a share               none
//   exclusive             whole devices                        -
//
// Every mode grants whole devices. A node with one policy grants slices that name this policy or none. On
// other nodes, each device or each slice has its own policy.
#pragma once

#include <string>
#include <string_view>

#include "core/amounts.h"
#include "fleet/node_kind.h"
#include "place/fleet.h"

namespace carve::fleet {

// Short names of rejections, by which nodes are counted. The names of the other rules are in place/rules.h.
inline constexpr std::string_view other_mode = "other mode";
inline constexpr std::string_view other_policy = "other policy";
inline constexpr std::string_view invalid_request = "invalid request";

// Why a node does not serve a request.
struct Refusal {
  std::string_view rule;  // The short name of the broken rule, a constant.
  std::string message;    // Without the node's name.
  // A smaller request that the node would serve. Empty if there is none.
  std::string advice = {};

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// Returns the validated request with the isolation and the policy that its slice would have on a node of this
// kind. Its policy has no value if each device has its own and the request names none.
Result<Request, Refusal> request_on(const Amounts&, const NodeKind&);

// Returns the request in the engine's form, for nodes of this kind. Under native-burst-share a share is a
// weight, which reserves nothing.
place::RequestShape shape_on(const Request&, const NodeKind&, const place::Fleet&);

}  // namespace carve::fleet
