#include "kubernetes/coordinator/webhook/pod_review.h"

#include "core/utc.h"
#include "dialects/pod/admission.h"
#include "dialects/pod/pod_json.h"
#include "dialects/pod/reapplication.h"
#include "kubernetes/coordinator/webhook/review.h"

namespace carve::kubernetes::coordinator {
namespace {

// Returns the request that the webhook wrote into the pod.
std::optional<kubernetes::PodRequest> request_of(const api::Json& pod) {
  const auto read = kubernetes::read_request(
      pod.value(api::Json::json_pointer("/metadata/annotations/carve.dev~1request"), std::string()));
  return read ? std::optional(*read) : std::nullopt;
}

// Returns the pod's label carve.dev/account; empty if it has none.
std::string account_of(const api::Json& pod) {
  const auto* const labels = dialects::member(dialects::member(&pod, "metadata"), "labels");
  return labels != nullptr && labels->is_object() ? dialects::text_member(*labels, kubernetes::account_label)
                                                  : "";
}

PodReview refused(PodReview review, unsigned status, const std::string& message) {
  review.answer = refuse(review.uid, status, message);
  review.is_allowed = false;
  review.request.reset();
  return review;
}

}  // namespace

Result<PodReview, std::string> review_pod(std::string_view json, const dialects::PodSettings& settings) {
  const auto review = read_review(json);
  if (!review) return tl::unexpected(review.error());
  const bool is_update = review->operation == "UPDATE" && review->old_object.is_object();
  if ((review->operation != "CREATE" && !is_update) || !review->object.is_object())
    return tl::unexpected(std::string("the request does not create or update a pod"));
  PodReview out{.answer = "",
                .uid = review->uid,
                .name_space = review->name_space,
                .is_allowed = false,
                .request = std::nullopt};
  if (is_update) {
    const auto again = dialects::reapplied(review->object, review->old_object);
    if (!again) return refused(std::move(out), unprocessable, message_of(again.error()));
    out.is_allowed = true;
    out.answer = accept(review->uid, review->object, *again, {});
    return out;
  }
  const auto admitted = dialects::admit(review->object, settings);
  if (!admitted) return refused(std::move(out), unprocessable, message_of(admitted.error()));
  out.is_allowed = true;
  out.answer = accept(review->uid, review->object, admitted->pod, admitted->warnings);
  if (!admitted->is_sliced) return out;
  out.request = request_of(admitted->pod);
  out.sent = review->object;
  out.stored = admitted->pod;
  out.warnings = admitted->warnings;
  return out;
}

PodReview in_namespace(PodReview review, const NamespaceRules& rules, bool shares) {
  if (!review.request) return review;
  const std::string account = account_of(review.stored);
  for (const std::string& refusal :
       {refusal_in(rules, *review.request, shares), account_refusal_in(rules, account)})
    if (!refusal.empty()) return refused(std::move(review), unprocessable, refusal);
  if (!rules.account.empty() && account.empty()) {
    review.stored["metadata"]["labels"][kubernetes::account_label] = rules.account;
    review.answer = accept(review.uid, review.sent, review.stored, review.warnings);
  }
  return review;
}

PodReview within_budget(PodReview review, const kubernetes::UsedBudgets& budgets, int64_t now_ns) {
  if (!review.request) return review;
  std::string account = account_of(review.stored);
  if (account.empty()) account = review.name_space;
  const auto used = budgets.accounts.find(account);
  if (used == budgets.accounts.end()) return review;
  const auto until = parse_utc("until", budgets.until);
  if (!until || *until <= now_ns) return review;
  return refused(
      std::move(review), forbidden,
      fmt::format("budget {} of account {} is used up: new pods with slices are rejected until {}, or until "
                  "the budget is raised",
                  used->second, account, budgets.until));
}

PodReview without_namespace(PodReview review, const std::string& problem) {
  return refused(std::move(review), unavailable, problem);
}

}  // namespace carve::kubernetes::coordinator
