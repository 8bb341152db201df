#include "kubernetes/node/dra/claim_reader.h"

#include <utility>

#include "core/holder.h"

namespace carve::kubernetes::node {

std::optional<std::string> claim_target(const ClaimName& name) {
  // A claim's name follows the same rules as a pod's.
  if (!check(ClaimPod{name.name_space, name.name, name.uid})) return std::nullopt;
  return fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}", name.name_space, name.name);
}

ClaimPreparer::ClaimAnswer claim_answer(const ClaimName& name, const kubernetes::ApiAnswer& answer) {
  if (answer.is_success()) return std::optional(answer.body);
  if (answer.status == 404 && kubernetes::read_status(answer.body).reason == "NotFound")
    return std::optional<std::string>();
  return tl::unexpected(fmt::format("claim {} cannot be read: {}", name.text(), answer.problem));
}

void ClaimReader::read(const ClaimName& name, std::function<void(ClaimPreparer::ClaimAnswer)> done) {
  const auto target = claim_target(name);
  if (!target)
    return done(tl::unexpected(fmt::format("claim '{}': not a valid name", name.text().substr(0, 80))));
  const uint64_t number = ++next_;
  calls_[number] =
      client_.send({.target = *target, .deadline_ns = claim_patience_ns},
                   [this, number, name, done = std::move(done)](const kubernetes::ApiAnswer& answer) {
                     const auto ended = std::move(calls_[number]);
                     calls_.erase(number);
                     done(claim_answer(name, answer));
                   });
}

}  // namespace carve::kubernetes::node
