// Warnings to users about limits that this machine cannot enforce.
#pragma once

#include <string>
#include <vector>

#include "objects/service_object.h"
#include "runner/replica_cgroup.h"

namespace carve::controller {

// Returns a message for each of the service's limits that is not enforced. podman enforces the limits of
// services with images.
std::vector<std::string> limit_warnings(const objects::ServiceSpec&, const runner::LimitProblems&);

}  // namespace carve::controller
