#include "controller/kubernetes/pod_reading.h"

#include <fmt/format.h>

#include "controller/kubernetes/json_members.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::controller {
namespace {

using api::Json;
using objects::WorkloadPhase;

bool is_pull_reason(std::string_view reason) {
  return reason == "ImagePullBackOff" || reason == "ErrImagePull" || reason == "InvalidImageName" ||
         reason == "ErrImageNeverPull";
}

}  // namespace

PodReason reason_of(const Json& pod) {
  for (const Json& container : member(member(pod, "status"), "containerStatuses")) {
    const Json& waiting = member(member(container, "state"), "waiting");
    const std::string reason = text_at(waiting, "reason");
    if (is_pull_reason(reason))
      return {WorkloadPhase::image_pull_failed, reason, text_at(waiting, "message")};
    if (reason == "CrashLoopBackOff")
      return {WorkloadPhase::crash_loop_back_off, reason, text_at(waiting, "message")};
  }
  const Json& scheduled = condition_of(pod, "PodScheduled");
  if (text_at(scheduled, "status") == "False")
    return {WorkloadPhase::waiting, "NoCapacity", text_at(scheduled, "message")};
  return {};
}

std::string last_exit(const Json& pod) {
  for (const Json& container : member(member(pod, "status"), "containerStatuses"))
    for (const char* state : {"state", "lastState"}) {
      const Json& ended = member(member(container, state), "terminated");
      if (!ended.is_object()) continue;
      const uint32_t signal = count_at(ended, "signal");
      return signal != 0 ? fmt::format("signal {}", signal)
                         : fmt::format("exit status {}", count_at(ended, "exitCode"));
    }
  return "";
}

std::vector<std::string> devices_of(const Json& pod) {
  std::vector<std::string> out;
  const std::string text =
      text_at(member(member(pod, "metadata"), "annotations"), kubernetes::slices_annotation);
  if (text.empty()) return out;
  if (const auto slices = kubernetes::read_slices(text))
    for (const auto& [name, slice] : slices->containers)
      for (const kubernetes::PlacedPart& part : slice.parts) out.push_back(carve::text(part.device));
  return out;
}

}  // namespace carve::controller
