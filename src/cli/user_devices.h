// Restricts the devices that `carve run` and `carve explain` choose from to those in the user's
// CUDA_VISIBLE_DEVICES. Inside a slice the variable refers to that slice's devices, not the node's, so it is
// ignored, as it is with --device.
#pragma once

#include <string>
#include <vector>

#include "client/agent_client.h"

namespace carve::cli {

// Returns the UUIDs of the devices that the variable names, in the variable's order; empty if all devices are
// allowed. Fails if there are fewer than requested.
Result<std::vector<std::string>, std::string> user_devices(const client::AgentClient& agent,
                                                           const api::SliceRequest& request);

// Returns the lists of devices to try in turn, each separated by commas: the first `wanted` of the named
// devices, then one more each time.
std::vector<std::string> preferred_lists(const std::vector<std::string>& named, uint32_t wanted);
// Returns why a CUDA_VISIBLE_DEVICES that lists too few devices cannot be used.
std::string too_few_named(const std::string& list, size_t named, uint32_t wanted);

}  // namespace carve::cli
