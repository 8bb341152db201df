// What a user is told of limits that this machine cannot enforce.
#pragma once

#include <string>
#include <vector>

#include "runner/replica_cgroup.h"
#include "wire/objects/service_object.h"

namespace carve::controller {

// Returns a sentence for each limit of the service that is not enforced. podman enforces those of images.
std::vector<std::string> limit_warnings(const objects::ServiceSpec&, const runner::LimitProblems&);

}  // namespace carve::controller
