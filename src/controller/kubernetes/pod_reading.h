// Reads what a status needs from a Pod of the API server: why it does not run, how its container ended, and on which
// devices its slices are. Any member may be missing or have another type. Pure.
#pragma once

#include <string>
#include <vector>

#include "objects/states.h"
#include "wire/api/json_value.h"

namespace carve::controller {

// Why a pod does not run. The phases are in the order in which the reasons hide others.
struct PodReason {
  objects::WorkloadPhase phase = objects::WorkloadPhase::running;
  std::string reason, message;
};
PodReason reason_of(const api::Json& pod);

// Returns how the pod's container ended last: "exit status 1", "signal 9". Empty if it has not.
std::string last_exit(const api::Json& pod);

// Returns the UUIDs of the devices of its slices.
std::vector<std::string> devices_of(const api::Json& pod);

}  // namespace carve::controller
