// Which running containers the agent is to be told of. The agent needs the first process of a container as
// the proof whose processes are in it if the path of their cgroup names no pod, and to see processes that
// never attach.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kubelet/rules/runtime_capability.h"
#include "wire/api/slice.h"

namespace carve::kubelet {

struct ContainerReport {
  std::string slice;
  std::string slot;
  PodContainer holder;
  std::string id;  // The runtime's.
  // Not the holder: an init container that has its slot, if its mounts say so.
  bool is_shared = false;

  // What a report is known by after it was made.
  std::string key() const { return slice + " " + id; }
};

// Returns the running containers of the slices' holders, and those of their pods that hold no slice, without
// those that were reported.
std::vector<ContainerReport> to_report(const std::vector<api::Slice>&, const std::vector<RuntimeContainer>&,
                                       const std::set<std::string>& reported);

}  // namespace carve::kubelet
