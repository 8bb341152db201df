// Turns pods with slices into pods with resource claims (DRA), for `kubectl carve translate --claims`. Pure.
#pragma once

#include <string>
#include <vector>

#include "wire/api/json_value.h"

namespace carve::kubernetes::cli {

// Replaces the slices of a pod that the webhook has admitted by claims: the pod loses what the webhook added for
// the extender and names one ResourceClaimTemplate for each container with a slice. Returns the templates; none if
// the pod has no slice. `owner` is the name of the object with the pod. Fails with a message if a slice has
// different amounts on its devices.
Result<std::vector<api::Json>, std::string> use_claims(api::Json& pod, const std::string& owner);

}  // namespace carve::kubernetes::cli
