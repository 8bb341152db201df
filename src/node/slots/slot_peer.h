// Classifies a process that attaches through a slot by the kernel's information. Pure, except for system
// calls.
#pragma once

#include "node/identity/pod_cgroup.h"

namespace carve::node {

enum class SlotPeer {
  inside,         // In the container that the slice is pinned to.
  new_container,  // In the right pod, but in an unknown container.
  unknown,        // The cgroup names no pod, and the container was not reported yet.
  other_pod,      // The cgroup names another pod, or two.
};

// `inside` is true if the process is in a container that the slice is pinned to, or descends from its
// processes.
SlotPeer judge_slot_peer(const PodOfProcess&, const std::string& uid, bool inside);

// Returns the process's topmost ancestor in these cgroups: the container's first process.
os::ProcessId first_process_in(const os::ProcessId&, const Cgroups& container, const World& = {});

}  // namespace carve::node
