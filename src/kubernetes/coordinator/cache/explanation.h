// Explains to users why a pod waits.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

// Returns why the pod waits: how many nodes break which rule, and what the nearest node lacks. If `nodes`
// contains all nodes, the message also proposes a smaller request that would fit and a migration that would
// make room.
std::string explain_waiting(Cache&, const std::string& uid, std::span<const std::string_view> nodes);
// The same for all nodes of the cache.
std::string explain_waiting(Cache&, const std::string& uid);

}  // namespace carve::kubernetes::coordinator
