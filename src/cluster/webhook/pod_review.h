// The mutating webhook of pods: an AdmissionReview in, its answer out (admission.k8s.io/v1; Kubernetes'
// documentation "Dynamic Admission Control"). What the pod becomes is decided by fronts/pod/admission.h.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "fronts/pod/pod_settings.h"

namespace carve::cluster {

inline constexpr size_t max_review_bytes = 8 << 20;  // etcd's limit of an object is 1.5 MB; a review has two.

struct PodReview {
  std::string answer;  // An AdmissionReview: the patch, or a refusal 422 with every sentence.
  bool is_allowed = false;
  bool is_sliced = false;
};

// Fails with a sentence if the text is no review of the creation of a pod.
Result<PodReview, std::string> review_pod(std::string_view json, const fronts::PodSettings&);

}  // namespace carve::cluster
