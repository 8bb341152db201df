// A node in the cache: its devices, and what its pods' slices take of them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kubernetes/coordinator/snapshot/cluster_node.h"
#include "kubernetes/format/pod_slices.h"
#include "place/fleet.h"

namespace carve::kubernetes::coordinator {

struct CachedNode {
  std::optional<uint32_t> number;    // In the engine's fleet. First, because a filter reads it of every node.
  std::optional<ClusterNode> state;  // No value if the node is gone or cannot be read.
  std::string name;
  std::string problem;              // Why its annotations cannot be read.
  uint64_t version = 0;             // resourceVersion of the object that was read.
  std::set<std::string> pods;       // uids of pods that have slices here.
  std::set<std::string> nominated;  // uids of pods that wait for this node after a preemption.

  bool is_empty() const { return !state && problem.empty() && pods.empty() && nominated.empty(); }
};

// The amounts of a device that slices take.
struct DeviceUse {
  Bytes memory;    // May exceed what is usable if the device shrank.
  Share promised;  // Of its compute.
  unsigned slices = 0;
  unsigned isolated = 0;  // Slices whose memory is limited.
  bool is_exclusive = false;

  friend bool operator==(const DeviceUse&, const DeviceUse&) = default;
};

// Returns a row for each device of the node. Parts on devices that the node does not have are ignored.
std::vector<DeviceUse> device_uses(const ClusterNode&, std::span<const kubernetes::PodSlices* const>);

// Returns whether more of the device is granted than it has.
bool is_overcommitted(const ClusterDevice&, const DeviceUse&);

// Returns the device's state for the engine: what is free of it.
place::DeviceState state_of(const ClusterDevice&, const DeviceUse&, bool refuses_best_effort);

// Returns the devices of the parts as a set; no value if the node does not have one of them.
std::optional<place::DeviceSet> device_set(const ClusterNode&, const std::vector<kubernetes::PlacedPart>&);

}  // namespace carve::kubernetes::coordinator
