// Selects the running containers that are reported to the agent. The agent needs the first process of a
// container to prove which processes belong to it if their cgroup path does not contain a pod, and to see
// processes that never attach.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kubernetes/node/rules/container_start.h"
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

// The claims of carve.dev that a container has, as kubelet lists them.
struct ContainerClaims {
  ContainerName container;
  std::vector<std::string> claims;  // "NAMESPACE/NAME", without duplicates.
};

// Returns the running containers that may have the slice of a claim and were not examined yet. All containers may:
// their mounts show which claim they have.
std::vector<RuntimeContainer> find_unexamined(const std::vector<api::Slice>&,
                                              const std::vector<RuntimeContainer>&,
                                              const std::set<std::string>& reported);
// Identifies an examination.
std::string claim_key(const RuntimeContainer&);

// Returns the slice of the claim whose attach point has this name, or null.
const api::Slice* slice_at(const std::vector<api::Slice>&, const std::string& attach_point);

// Returns the container's pod and name from its labels.
PodContainer pod_container(const RuntimeContainer&);

// Returns why the container does not get the slice: its pod may not use the claim, or it has a second claim, whose
// attach directory hides the first one's or is hidden by it. Empty if it does.
std::string claim_refusal(const api::Slice&, const PodContainer&, const std::vector<ContainerClaims>&);

}  // namespace carve::kubernetes::node
