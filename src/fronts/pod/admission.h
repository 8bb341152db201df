// A pod as the cluster keeps it: the webhook's translation of whatever dialect the pod is written in.
//
// The foreign limits become ours, which scheduler and quotas add up; what was given and what it means are in
// the annotation carve.dev/request (wire/kube/pod_request.h). Pods that ask for nothing of ours are not
// changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fronts/pod/pod_settings.h"
#include "wire/api/field_error.h"
#include "wire/api/json_value.h"

namespace carve::fronts {

struct AdmittedPod {
  api::Json pod;
  bool is_sliced = false;
  std::vector<std::string> warnings;
};

// Returns the pod as it is to be stored, or every error of it. A pod that was admitted already comes back
// unchanged: the API server may call the webhook again after others have changed the pod. Annotations of ours
// that this translation would not write are removed.
Result<AdmittedPod, api::FieldErrors> admit(const api::Json& pod, const PodSettings&);

}  // namespace carve::fronts
