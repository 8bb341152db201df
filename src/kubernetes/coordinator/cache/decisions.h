// The scheduler's decisions: where a pod can run, where it runs best, and which devices it gets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

// Returns for each node the short name of the rule that rejects the pod. Empty if the pod fits.
std::vector<std::string_view> filter_nodes(Cache&, const std::string& uid,
                                           std::span<const std::string_view> nodes);

// Returns a score from 0 to 10 for each node. The node that the strategy prefers gets 10.
std::vector<uint8_t> prioritize_nodes(Cache&, const std::string& uid,
                                      std::span<const std::string_view> nodes);

// Chooses devices of the node and reserves the slices. A repeated call for the same node returns the same
// slices. Fails with a message.
Result<kubernetes::PodSlices, std::string> reserve_devices(Cache&, const std::string& uid,
                                                           const std::string& node);

// Returns whether the pod could be bound to one of these nodes now.
bool fits_somewhere(Cache&, const std::string& uid, std::span<const std::string_view> nodes);
// The same for all nodes of the cache.
bool fits_somewhere(Cache&, const std::string& uid);

}  // namespace carve::kubernetes::coordinator
