// A node as the cluster's objects say it: its name, its annotations carve.dev/devices and carve.dev/cordon.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/answers.h"
#include "place/topology.h"
#include "wire/kube/node_devices.h"

namespace carve::cluster {

// The settings of a node that decide what a request becomes there.
struct NodeKind {
  kube::NodeMode mode = kube::NodeMode::memory_and_compute;
  bool is_mode_named = false;  // A label asks for it; otherwise it is the default.
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
  Bytes context;  // Of one context that a slice pays.
  bool migrates = false;
  std::string trouble;  // Why it serves no new slice; empty: it does.

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

// Fails with a sentence if the annotations cannot be read, or contradict each other: such a node is not used.
Result<ClusterNode, std::string> read_node(const kube::ObjectMeta&);

}  // namespace carve::cluster
