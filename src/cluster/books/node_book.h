// What is booked on a node: its devices less the slices of its pods.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cluster/snapshot/cluster_node.h"
#include "place/fleet.h"
#include "wire/kube/pod_slices.h"

namespace carve::cluster {

struct NodeBook {
  std::optional<uint32_t> number;    // In the engine's fleet. First, as a filter reads it of every node.
  std::optional<ClusterNode> state;  // None: the node is gone, or its annotations cannot be read.
  std::string name;
  std::string problem;              // Why they cannot.
  uint64_t version = 0;             // resourceVersion of the object that was read.
  std::set<std::string> pods;       // uids of those that have slices here.
  std::set<std::string> nominated;  // uids of those that wait for this node after a preemption.

  bool is_empty() const { return !state && problem.empty() && pods.empty() && nominated.empty(); }
};

// What the slices take of a device.
struct DeviceBook {
  Bytes memory;    // May exceed what is usable if the device shrank.
  Share promised;  // Of its compute.
  unsigned slices = 0;
  unsigned isolated = 0;  // Slices whose memory is limited.
  bool is_exclusive = false;

  friend bool operator==(const DeviceBook&, const DeviceBook&) = default;
};

// Returns a row for each device of the node. Parts of devices that the node does not have are left out.
std::vector<DeviceBook> booked(const ClusterNode&, std::span<const kube::PodSlices* const>);

// Returns whether more of the device is granted than there is.
bool is_overcommitted(const ClusterDevice&, const DeviceBook&);

// Returns what is free of a device, for a decision.
place::DeviceState state_of(const ClusterDevice&, const DeviceBook&, bool refuses_best_effort);

// Returns the devices of the parts as a set; no value: one of them is not a device of the node.
std::optional<place::DeviceSet> device_set(const ClusterNode&, const std::vector<kube::PlacedPart>&);

}  // namespace carve::cluster
