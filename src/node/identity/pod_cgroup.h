// Determines the pod of a process from its cgroup paths. kubelet creates a cgroup for each pod:
//
//   cgroupfs   /kubepods/burstable/pod0b6c0e4e-1d2f/CONTAINER
//   systemd
//   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0b6c0e4e_1d2f.slice/cri-containerd-ID.scope
//
// With cgroupsPerQOS off there is no such cgroup. A process in a container may create cgroups below its own
// but not above, so the outermost pod in a path is authoritative.
#pragma once

#include <set>
#include <string>

#include "node/identity/identity.h"

namespace carve::node {

struct PodOfProcess {
  std::set<std::string> uids;  // Written with '-', as in Kubernetes. Two if cgroups contradict each other.
  Cgroups container;           // The lines that name a pod, cut after the container: "/kubepods/podUID/ID".
};
PodOfProcess pod_of(const Cgroups&);

}  // namespace carve::node
