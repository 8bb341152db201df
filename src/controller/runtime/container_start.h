// How a replica with an image is started: podman runs the container in the foreground, under the same
// supervisor as a local program. The container gets its slice as a CDI device, so its first process is in the
// slice before any code of the image runs (docs/containers.md).
#pragma once

#include "controller/runtime/launcher.h"
#include "controller/services/effects.h"

namespace carve::controller {

inline constexpr const char* container_engine = "/usr/bin/podman";

// What podman's options depend on.
struct ContainerHost {
  bool has_both_cgroup_versions = false;  // crun does not know the controllers of version 1 there.
  bool may_raise_limits = true;           // Without CAP_SYS_RESOURCE podman's default limits are refused.
};
ContainerHost container_host();

// Returns the request that starts the container. Names of variables are on podman's command line, their
// values are not. The supervisor removes the container when podman has ended: a podman that was killed leaves
// it.
LaunchRequest container_request(const ProgramStart&, const ContainerHost&);

}  // namespace carve::controller
