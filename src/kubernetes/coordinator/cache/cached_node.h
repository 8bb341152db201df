// A node in the cache: its devices, and how much of them its pods' slices use.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fleet/annotated_node.h"
#include "kubernetes/format/pod_slices.h"
#include "place/fleet.h"

namespace carve::kubernetes::coordinator {

struct CachedNode {
  std::optional<uint32_t> number;       // In the engine's fleet. First, because filters read it.
  std::optional<fleet::GpuNode> state;  // No value if the node is gone or cannot be read.
  std::string name;
  std::string problem;              // Why its annotations cannot be read; empty if they can.
  uint64_t version = 0;             // resourceVersion of the object that was read.
  std::set<std::string> pods;       // uids of pods that have slices here.
  std::set<std::string> nominated;  // uids of pods that wait for this node after a preemption.

  bool is_empty() const { return !state && problem.empty() && pods.empty() && nominated.empty(); }
};

// Returns the devices of the parts as a set, or no value if the node lacks one of them.
std::optional<place::DeviceSet> device_set(const fleet::GpuNode&, const std::vector<kubernetes::PlacedPart>&);

}  // namespace carve::kubernetes::coordinator
