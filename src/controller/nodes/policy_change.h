// Effects of a change of a node's compute policy on workloads that need a certain policy.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "controller/objects/object_registry.h"

namespace carve::controller {

// Returns a warning for each policy that the change removes: the workloads that need it and find it on one of
// their nodes now, but on none once the `changed` nodes have the policy `wanted`. Their replicas keep
// running, and are not started again. `nodes` has all nodes as they are.
std::vector<std::string> policy_warnings(const std::set<std::string>& changed, const std::string& wanted,
                                         const std::vector<ObjectRegistry::Pointer>& nodes,
                                         const std::vector<ObjectRegistry::Pointer>& workloads);

}  // namespace carve::controller
