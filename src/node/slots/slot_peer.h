// Classifies a process that attaches through a slot by the kernel's information. All functions are pure
// except for system calls.
#pragma once

#include "node/identity/pod_cgroup.h"

namespace carve::node {

enum class SlotPeer {
  inside,         // The process is in the container to which the slice is pinned.
  new_container,  // It is in the right pod but in an unknown container.
  unknown,        // Its cgroup names no pod, and the container was not reported yet.
  other_pod,      // Its cgroup names another pod, or two pods.
};

// `inside` is true if the process is in a container to which the slice is pinned, or descends from its
// processes.
SlotPeer judge_slot_peer(const PodOfProcess&, const std::string& uid, bool inside);

// Returns the process's topmost ancestor in these cgroups, which is the container's first process.
os::ProcessId first_process_in(const os::ProcessId&, const Cgroups& container, const World& = {});

}  // namespace carve::node
