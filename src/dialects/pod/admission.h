// The stored form of a pod in the cluster: the webhook's translation of any dialect.
//
// Limits of other dialects become Carve's, which scheduler and quotas add up; the original request and its
// meaning are in the annotation carve.dev/request (kubernetes/format/pod_request.h). Pods that request
// nothing from Carve are not changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dialects/pod/pod_settings.h"
#include "wire/api/field_error.h"
#include "wire/api/json_value.h"

namespace carve::dialects {

struct AdmittedPod {
  api::Json pod;
  bool is_sliced = false;
  std::vector<std::string> warnings;
};

// Returns the pod to store, or all its errors. A pod that was admitted already comes back unchanged: the API
// server may call the webhook again after others have changed the pod. Annotations of Carve that this
// translation would not write are removed.
Result<AdmittedPod, api::FieldErrors> admit(const api::Json& pod, const PodSettings&);

}  // namespace carve::dialects
