#include "kubernetes/node/static_pods.h"

#include <fmt/format.h>

#include "kubernetes/node/rules/pod_object.h"

namespace carve::kubernetes::node {
namespace {

constexpr const char* mirror_annotation = "kubernetes.io/config.mirror";

}  // namespace

void StaticPods::look(const kubernetes::ObjectsByUid& pods) {
  std::erase_if(seen_, [&](const auto& seen) { return !pods.contains(seen.first); });
  for (const auto& [uid, pod] : pods) {
    if (!pod.annotations.contains(mirror_annotation) || seen_.contains(uid)) continue;
    seen_[uid] =
        client_.send({.target = fmt::format("/api/v1/namespaces/{}/pods/{}", pod.name_space, pod.name)},
                     [this, pod](const kubernetes::ApiAnswer& answer) { answered(pod, answer); });
  }
}

void StaticPods::answered(const kubernetes::ObjectMeta& pod, const kubernetes::ApiAnswer& answer) {
  const auto ended = seen_.find(pod.uid);
  if (ended == seen_.end()) return;
  const std::unique_ptr<kubernetes::ApiCall> call = std::move(ended->second);
  if (!answer.is_success()) {  // The next look reads the pod again.
    seen_.erase(ended);
    return;
  }
  const std::string request = requested_limit(answer.body);
  if (request.empty()) return;
  note_({.about = {.kind = "Pod", .name_space = pod.name_space, .name = pod.name, .uid = pod.uid},
         .severity = Severity::warning,
         .reason = "CarveNoSlice",
         .action = "StartContainer",
         .note = request +
                 " and runs without a slice: kubelet starts static pods without Carve's webhook and "
                 "scheduler; create the pod through the API server"});
}

}  // namespace carve::kubernetes::node
