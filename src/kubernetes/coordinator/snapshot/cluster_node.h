// A node, read from the cluster's objects: its name and its annotations carve.dev/devices and
// carve.dev/cordon.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubernetes/api/answers.h"
#include "kubernetes/format/node_devices.h"
#include "place/topology.h"

namespace carve::kubernetes::coordinator {

// The settings of a node that determine how it serves a request.
struct NodeKind {
  NodeMode mode = NodeMode::memory_and_compute;
  bool is_mode_named = false;  // A label requests the mode; otherwise it is the default.
  Policy policy = Policy::fixed_share;

  friend bool operator==(const NodeKind&, const NodeKind&) = default;
};

inline constexpr unsigned node_kinds = 24;

// Returns the number of the kind, below node_kinds.
constexpr unsigned number_of(const NodeKind& kind) {
  return (static_cast<unsigned>(kind.mode) * 2 + kind.is_mode_named) * 3 + static_cast<unsigned>(kind.policy);
}

struct ClusterDevice {
  Uuid uuid;
  std::string model;  // "NVIDIA A10"
  Bytes usable;
  Bytes context;  // Bytes of a context that the slice pays for.
  bool migrates = false;
  std::string trouble;  // Why it serves no new slice. Empty if it does.

  friend bool operator==(const ClusterDevice&, const ClusterDevice&) = default;
};

struct ClusterNode {
  NodeKind kind;
  std::string name;
  std::vector<ClusterDevice> devices;  // In the agent's order.
  std::optional<place::Topology> links;
  uint64_t cpu_milli = 0;
  Bytes memory;
  Strategy placement = Strategy::binpack;
  bool refuses_best_effort = false;
};

// Fails with a message if the annotations cannot be read, or contradict each other; such a node is not used.
Result<ClusterNode, std::string> read_node(const kubernetes::ObjectMeta&);

}  // namespace carve::kubernetes::coordinator
