// Effects of a change of a node's compute policy on workloads that need a certain policy.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "controller/objects/object_registry.h"

namespace carve::controller {

// Returns a warning for each policy that some workloads need, that one of their nodes has now, and that none
// of them has once the `changed` nodes have the policy `wanted`. The replicas of these workloads keep running
// but cannot be started again. `nodes` contains all nodes with their current policies.
std::vector<std::string> policy_warnings(const std::set<std::string>& changed, const std::string& wanted,
                                         const std::vector<ObjectRegistry::Pointer>& nodes,
                                         const std::vector<ObjectRegistry::Pointer>& workloads);

}  // namespace carve::controller
