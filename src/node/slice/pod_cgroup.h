// The pod of a process, from the paths of its cgroups. kubelet makes a cgroup for each pod:
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

#include "node/slice/identity.h"

namespace carve::node {

struct PodOfProcess {
  std::set<std::string> uids;  // With '-', as Kubernetes writes them. Two: the cgroups contradict each other.
  Cgroups container;           // The lines that name a pod, cut behind the container: "/kubepods/podUID/ID".
};
PodOfProcess pod_of(const Cgroups&);

}  // namespace carve::node
