// Why a pod waits, in a message for users.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

// Returns why the pod waits: how many nodes break which rule, and what the nearest of them lacks. If `nodes`
// are all nodes, also which smaller request would fit, and which migration would make room.
std::string explain_waiting(Cache&, const std::string& uid, std::span<const std::string_view> nodes);
// The same for all nodes of the cache.
std::string explain_waiting(Cache&, const std::string& uid);

}  // namespace carve::kubernetes::coordinator
