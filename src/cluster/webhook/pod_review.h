// The mutating webhook of pods. What the pod becomes is decided by fronts/pod/admission.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/webhook/namespace_rules.h"
#include "fronts/pod/pod_settings.h"

namespace carve::cluster {

struct PodReview {
  std::string answer;  // An AdmissionReview: the patch, or a refusal 422 with every sentence.
  std::string uid;     // Of the review.
  std::string name_space;
  bool is_allowed = false;
  std::optional<kube::PodRequest> request;  // Of a pod with slices that is allowed.
};

// Fails with a sentence if the text is no review of the creation of a pod.
Result<PodReview, std::string> review_pod(std::string_view json, const fronts::PodSettings&);

// Returns the review as its namespace allows it. `shares`: the cluster's setting.
PodReview in_namespace(PodReview, const NamespaceRules&, bool shares);
// Returns the review of a pod whose namespace could not be read.
PodReview without_namespace(PodReview, const std::string& problem);

}  // namespace carve::cluster
