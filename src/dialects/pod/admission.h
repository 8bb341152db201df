// Translates a pod in any dialect into the form that the cluster stores, for the webhook.
//
// Limits of other dialects are replaced by Carve's, which the scheduler and quotas add up. The original
// request and its meaning are kept in the annotation carve.dev/request (kubernetes/format/pod_request.h).
// Pods that request nothing from Carve are not changed.
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

// Returns the pod to store. Fails with all errors. A pod that was already admitted is returned unchanged,
// because the API server may call the webhook again after other webhooks have changed the pod. Carve's
// annotations that this translation would not write are removed.
Result<AdmittedPod, api::FieldErrors> admit(const api::Json& pod, const PodSettings&);

}  // namespace carve::dialects
