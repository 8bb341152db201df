// Reads a node and the slices on it from the answers of its agent, which the controller keeps as the node's
// status (objects/node_object.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fleet/device_use.h"
#include "objects/node_object.h"

namespace carve::fleet {

// Fails with a message if placement cannot use the node. A setting whose word is unknown has its default, and
// links that cannot be read are unknown.
Result<GpuNode, std::string> read_node(const std::string& name,
                                       const std::map<std::string, std::string>& labels,
                                       const objects::NodeStatus&);

// Returns a row for each device of the status.
std::vector<DeviceUse> device_uses(const objects::NodeStatus&);

}  // namespace carve::fleet
