// Preemption: which pods make room for another one. Nothing is changed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

// Number of nodes that the scheduler's dry run considers (minCandidateNodesAbsolute of
// DefaultPreemptionArgs).
inline constexpr size_t max_preemptible_nodes = 100;
// Per request; each takes about 20 us.
inline constexpr size_t max_preemption_tries = 500;

// Returns whether the pod would fit on the node if these pods were gone from it.
bool fits_without(Cache&, const std::string& uid, const std::string& node, std::span<const std::string> pods);

// Adds pods of lower priority to those that a scheduler would remove from the node, until the pod fits there:
// the lowest priorities first, then few large pods, then the newest. No value if that does not help.
std::optional<std::vector<std::string>> complete_victims(Cache&, const std::string& uid,
                                                         const std::string& node,
                                                         std::span<const std::string> given);

// Returns the positions of the first max_preemptible_nodes nodes that could serve the pod if all pods of
// lower priority were gone from them.
std::vector<size_t> preemptible_nodes(Cache&, const std::string& uid,
                                      std::span<const std::string_view> nodes);

}  // namespace carve::kubernetes::coordinator
