// Nodes for tests.
#pragma once

#include <fmt/format.h>

#include "objects/node_object.h"

namespace carve::controller {

// Returns two free devices of 16 GiB whose memory and compute are divided.
inline objects::NodeStatus two_devices_of_16_gib() {
  objects::NodeStatus node{.state = NodePhase::running};
  node.mode.effective = "memory-and-compute";
  for (uint32_t index = 0; index < 2; ++index)
    node.devices.push_back({.index = index,
                            .uuid = fmt::format("GPU-00000000-0000-0000-0000-00000000000{}", index + 1),
                            .usable_bytes = uint64_t{16} << 30,
                            .free_bytes = uint64_t{16} << 30,
                            .free_share_bp = 10000});
  return node;
}

}  // namespace carve::controller
