#include "kubernetes/coordinator/webhook/settings_review.h"

#include <algorithm>

#include "dialects/pod/guards.h"
#include "kubernetes/coordinator/webhook/review.h"

namespace carve::kubernetes::coordinator {
namespace {

constexpr const char* plain_nvidia_warning =
    "plainNvidiaGpu whole: to reach the webhook, pods with only nvidia.com/gpu need overlay plain-nvidia-gpu";

constexpr const char* own_scheduler = "carve-scheduler";
constexpr const char* not_beside =
    "schedulers: default-scheduler does not call this coordinator, so pods with slices would stay without "
    "devices; leave it out, or run the coordinator next to the cluster's scheduler (--lease "
    "kube-system/kube-scheduler)";

bool has_scheduler(const ClusterSettings& settings, const std::string& name) {
  return std::ranges::find(settings.schedulers, name) != settings.schedulers.end();
}

Result<ClusterSettings, api::FieldErrors> settings_of(const api::Json& object) {
  SettingsData data;
  const auto found = object.find("data");
  if (found != object.end() && found->is_object())
    for (const auto& [key, value] : found->items())
      data[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return read_settings(data);
}

}  // namespace

Result<std::string, std::string> review_settings(std::string_view json, const PodsInUnits& pods,
                                                 SchedulerBeside scheduler) {
  const auto review = read_review(json);
  if (!review) return tl::unexpected(review.error());
  if (!review->object.is_object()) return accept(review->uid);
  const auto after = settings_of(review->object);
  if (!after) return refuse(review->uid, unprocessable, message_of(after.error()));
  // Unreadable settings have no effect, so any change of them is an improvement.
  const auto before = review->old_object.is_object() ? settings_of(review->old_object) : ClusterSettings{};
  const auto errors = before ? refuse_change(*before, *after, pods) : api::FieldErrors();
  if (!errors.empty()) return refuse(review->uid, unprocessable, message_of(errors));
  if (scheduler == SchedulerBeside::own)
    for (const std::string& name : after->schedulers)
      if (name == dialects::default_scheduler) return refuse(review->uid, unprocessable, not_beside);
  std::vector<std::string> warnings;
  for (const std::string& name : after->schedulers)
    if (name != own_scheduler && name != dialects::default_scheduler &&
        !(before && has_scheduler(*before, name)))
      warnings.push_back(
          fmt::format("schedulers: pods of {} wait unless a scheduler profile of this name uses "
                      "carve-coordinator as extender",
                      name));
  if (after->plain_nvidia_is_whole && !(before && before->plain_nvidia_is_whole))
    warnings.emplace_back(plain_nvidia_warning);
  return accept(review->uid, review->object, review->object, warnings);
}

Result<ClusterSettings, api::FieldErrors> read_settings_object(std::string_view json) {
  const auto object = api::parse(json);
  if (!object) return tl::unexpected(api::FieldErrors{{.field = "", .value = "", .message = object.error()}});
  if (!object->is_object())
    return tl::unexpected(api::FieldErrors{{.field = "", .value = "", .message = "not a ConfigMap"}});
  return settings_of(*object);
}

}  // namespace carve::kubernetes::coordinator
