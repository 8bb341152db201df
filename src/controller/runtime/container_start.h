// Starts a replica that has an image: podman runs the container in the foreground, under the same supervisor
// as a local program. The container gets its slice as a CDI device, so its first process is in the slice
// before any code of the image runs (docs/containers.md).
#pragma once

#include "controller/runtime/launcher.h"
#include "controller/services/effects.h"

namespace carve::controller {

inline constexpr const char* container_engine = "/usr/bin/podman";

// Facts about the host on which podman's options depend.
struct ContainerHost {
  bool has_both_cgroup_versions = false;  // crun then ignores the controllers of version 1.
  bool may_raise_limits = true;           // Needs CAP_SYS_RESOURCE; otherwise podman's defaults fail.
};
ContainerHost container_host();

// Returns the request that starts the container. podman's command line contains the names of variables but
// not their values. The supervisor removes the container when podman has ended, because a killed podman
// leaves it.
LaunchRequest container_request(const ProgramStart&, const ContainerHost&);

// Sets the variables that make CUDA and NVIDIA's container runtime show no device. Used for programs without
// a slice, which could otherwise use whole devices without a quota.
void hide_devices(std::map<std::string, std::string>& env);

}  // namespace carve::controller
