// The mutating webhook for pods. dialects/pod/admission.h decides how it changes a new pod, and
// dialects/pod/reapplication.h how it changes a pod whose manifest is applied again.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "dialects/pod/pod_settings.h"
#include "kubernetes/coordinator/webhook/namespace_rules.h"
#include "kubernetes/format/used_budgets.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::coordinator {

struct PodReview {
  std::string answer;  // An AdmissionReview: the patch, or a rejection (422) with every message.
  std::string uid;     // The review's uid.
  std::string name_space;
  bool is_allowed = false;
  std::optional<kubernetes::PodRequest> request;  // Set if the pod has slices and is allowed.
  // The pod as it was sent and as it will be stored, and the warnings, if `request` is set.
  api::Json sent, stored;
  std::vector<std::string> warnings;
};

// Reviews the creation or update of a pod. Fails with a message if the text is not such a review.
Result<PodReview, std::string> review_pod(std::string_view json, const dialects::PodSettings&);

// Returns the review after the namespace's rules were applied, which may add the label of the account.
// `shares` is the cluster's setting.
PodReview in_namespace(PodReview, const NamespaceRules&, bool shares);
// Returns the review after in_namespace(), rejected if the pod's account has used up its budget. `now_ns` is UTC.
PodReview within_budget(PodReview, const kubernetes::UsedBudgets&, int64_t now_ns);
// Returns the review of a pod whose namespace could not be read.
PodReview without_namespace(PodReview, const std::string& problem);

}  // namespace carve::kubernetes::coordinator
