// The cluster as one document for carve-replay (--snapshot FILE): nodes with their devices, modes and
// policies, and the slices on them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kubernetes/cli/cluster_view.h"

namespace carve::kubernetes::cli {

struct FleetDevice {
  std::string uuid;
  uint64_t memory_bytes = 0;
  std::string trouble;  // Why it serves no new slices; empty if it does.
};
struct FleetNode {
  std::string name;
  std::string model;  // Model of its first device.
  std::string mode, policy;
  uint64_t cpu_milli = 0, host_memory_bytes = 0;
  std::vector<FleetDevice> devices;
  std::optional<std::vector<std::string>> links;  // No value if unknown.
};
struct FleetSlice {
  std::string name;  // NAMESPACE/POD/CONTAINER
  std::string node;
  std::vector<std::string> devices;  // UUIDs.
  uint64_t memory_bytes = 0;         // On each device.
  uint32_t share_bp = 0;             // Guaranteed share of each device.
  bool exclusive = false;
  bool isolated = true;
  uint64_t cpu_milli = 0;  // CPU request of the whole pod, stored with its first slice.
  std::string application;
};
struct FleetSnapshot {
  std::vector<FleetNode> nodes;
  std::vector<FleetSlice> held;
};

// `left_out` receives the slices and nodes that the document cannot represent, each with the reason.
FleetSnapshot snapshot_of(const ClusterView&, std::vector<std::string>& left_out);

}  // namespace carve::kubernetes::cli
