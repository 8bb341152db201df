// The devices among which the user's CUDA_VISIBLE_DEVICES lets `carve run` and `carve explain` choose. In a
// slice the variable counts the devices of that slice, not of the node, and is ignored here, as it is with
// --device.
#pragma once

#include <string>
#include <vector>

#include "client/agent_client.h"

namespace carve::cli {

// Returns the UUIDs of the devices that the variable names, in its order; empty if all devices are allowed.
// Fails if there are fewer than requested.
Result<std::vector<std::string>, std::string> user_devices(const client::AgentClient& agent,
                                                           const api::SliceRequest& request);

// Returns the lists of devices to try one after the other, separated by commas: the first `wanted` of the
// named devices, then one more each time.
std::vector<std::string> preferred_lists(const std::vector<std::string>& named, uint32_t wanted);
// Returns why a CUDA_VISIBLE_DEVICES with too few devices cannot be used.
std::string too_few_named(const std::string& list, size_t named, uint32_t wanted);

}  // namespace carve::cli
