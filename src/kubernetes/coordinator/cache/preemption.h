// Preemption: chooses the pods that make room for another one. The cache is not changed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

// Number of nodes that the scheduler's dry run examines (minCandidateNodesAbsolute of DefaultPreemptionArgs).
inline constexpr size_t max_preemptible_nodes = 100;
// Limit per request of the scheduler; each try takes about 20 us.
inline constexpr size_t max_preemption_tries = 500;

// Returns whether the pod would fit on the node without these pods.
bool fits_without(Cache&, const std::string& uid, const std::string& node, std::span<const std::string> pods);

// Adds pods of lower priority to the scheduler's victims on the node until the pod fits there. It prefers the
// lowest priorities, then few large pods, then the newest. Returns no value if the pod does not fit even then.
std::optional<std::vector<std::string>> complete_victims(Cache&, const std::string& uid,
                                                         const std::string& node,
                                                         std::span<const std::string> given);

// Returns the positions of the first max_preemptible_nodes nodes that could serve the pod if all their pods
// of lower priority were removed.
std::vector<size_t> preemptible_nodes(Cache&, const std::string& uid,
                                      std::span<const std::string_view> nodes);

}  // namespace carve::kubernetes::coordinator
