// A node with devices, as placement sees it. There is one builder for each source: a node's annotations in
// Kubernetes (annotated_node.h) and the answers of a node's agent (answered_node.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/device.h"
#include "fleet/node_kind.h"
#include "place/topology.h"

namespace carve::fleet {

struct GpuDevice {
  Uuid uuid;
  unsigned index = 0;  // NVML's index on the node.
  std::string model;   // "NVIDIA A10"
  Bytes usable;
  Bytes context;  // Bytes of a context that the slice pays for.
  bool migrates = false;
  std::string trouble;           // Why it serves no new slice. Empty if it does.
  std::optional<Policy> policy;  // If the node's devices differ. No value if the kind or each slice decides.

  friend bool operator==(const GpuDevice&, const GpuDevice&) = default;
};

struct GpuNode {
  NodeKind kind;
  std::string name;
  std::vector<GpuDevice> devices;  // In the agent's order.
  std::optional<place::Topology> links;
  uint64_t cpu_milli = 0;  // Thousandths of a core. 0 means unknown.
  Bytes memory;            // Memory of the host. 0 means unknown.
  Strategy placement = Strategy::binpack;
  bool refuses_best_effort = false;
};

// Reads how the node's devices are connected, from a line for each device as `nvidia-smi topo -m` prints it.
// No value if there is no line. Fails with a message.
Result<std::optional<place::Topology>, std::string> read_links(const std::vector<std::string>& lines,
                                                               size_t devices);

}  // namespace carve::fleet
