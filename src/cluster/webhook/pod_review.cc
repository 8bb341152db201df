#include "cluster/webhook/pod_review.h"

#include "cluster/webhook/review.h"
#include "fronts/pod/admission.h"

namespace carve::cluster {
namespace {

// Returns what the admission has written into the pod.
std::optional<kube::PodRequest> request_of(const api::Json& pod) {
  const auto read = kube::read_request(
      pod.value(api::Json::json_pointer("/metadata/annotations/carve.dev~1request"), std::string()));
  return read ? std::optional(*read) : std::nullopt;
}

PodReview refused(PodReview review, unsigned status, const std::string& message) {
  review.answer = refuse(review.uid, status, message);
  review.is_allowed = false;
  review.request.reset();
  return review;
}

}  // namespace

Result<PodReview, std::string> review_pod(std::string_view json, const fronts::PodSettings& settings) {
  const auto review = read_review(json);
  if (!review) return tl::unexpected(review.error());
  if (review->operation != "CREATE" || !review->object.is_object())
    return tl::unexpected(std::string("the request does not create a pod"));
  PodReview out{.answer = "",
                .uid = review->uid,
                .name_space = review->name_space,
                .is_allowed = false,
                .request = std::nullopt};
  const auto admitted = fronts::admit(review->object, settings);
  if (!admitted) return refused(std::move(out), unprocessable, message_of(admitted.error()));
  out.is_allowed = true;
  out.answer = accept(review->uid, review->object, admitted->pod, admitted->warnings);
  if (admitted->is_sliced) out.request = request_of(admitted->pod);
  return out;
}

PodReview in_namespace(PodReview review, const NamespaceRules& rules, bool shares) {
  if (!review.request) return review;
  const std::string refusal = refusal_in(rules, *review.request, shares);
  return refusal.empty() ? review : refused(std::move(review), unprocessable, refusal);
}

PodReview without_namespace(PodReview review, const std::string& problem) {
  return refused(std::move(review), unavailable, problem);
}

}  // namespace carve::cluster
