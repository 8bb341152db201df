// Finds the pod of a process from its cgroup paths. kubelet makes a cgroup for each pod:
//
//   cgroupfs   /kubepods/burstable/pod0b6c0e4e-1d2f/CONTAINER
//   systemd
//   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0b6c0e4e_1d2f.slice/cri-containerd-ID.scope
//
// With cgroupsPerQOS off there is none. A process in a container may make cgroups below its own, but none
// above, so the outermost pod in a path is the true one.
#pragma once

#include <set>
#include <string>

#include "node/identity/identity.h"

namespace carve::node {

struct PodOfProcess {
  std::set<std::string> uids;  // With '-', as in Kubernetes. Two if the cgroups contradict each other.
  Cgroups container;           // The lines that name a pod, cut after the container: "/kubepods/podUID/ID".
};
PodOfProcess pod_of(const Cgroups&);

}  // namespace carve::node
