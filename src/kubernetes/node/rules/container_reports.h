// Selects the running containers that are reported to the agent. The agent needs the first process of a
// container to prove which processes belong to it if their cgroup path does not contain a pod, and to see
// processes that never attach.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kubernetes/node/rules/runtime_capability.h"
#include "wire/api/slice.h"

namespace carve::kubernetes::node {

struct ContainerReport {
  std::string slice;
  std::string slot;
  PodContainer holder;
  std::string id;  // The runtime's id of the container.
  // True for an init container that has the holder's slot but is not the holder, if its mounts confirm that.
  bool is_shared = false;

  // Identifies a report that was made.
  std::string key() const { return slice + " " + id; }
};

// Returns the running containers of the slices' holders, and the containers of their pods that hold no slice.
// Leaves out those that were already reported.
std::vector<ContainerReport> find_unreported(const std::vector<api::Slice>&,
                                             const std::vector<RuntimeContainer>&,
                                             const std::set<std::string>& reported);

}  // namespace carve::kubernetes::node
