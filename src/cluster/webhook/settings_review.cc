#include "cluster/webhook/settings_review.h"

#include "cluster/webhook/review.h"

namespace carve::cluster {
namespace {

constexpr const char* plain_nvidia_warning =
    "plainNvidiaGpu whole: pods with nvidia.com/gpu alone reach the webhook with overlay plain-nvidia-gpu";

Result<ClusterSettings, api::FieldErrors> settings_of(const api::Json& object) {
  SettingsData data;
  const auto found = object.find("data");
  if (found != object.end() && found->is_object())
    for (const auto& [key, value] : found->items())
      data[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return read_settings(data);
}

}  // namespace

Result<std::string, std::string> review_settings(std::string_view json, const PodsInUnits& pods) {
  const auto review = read_review(json);
  if (!review) return tl::unexpected(review.error());
  if (!review->object.is_object()) return accept(review->uid);
  const auto after = settings_of(review->object);
  if (!after) return refuse(review->uid, unprocessable, message_of(after.error()));
  // Settings that cannot be read have no effect, so each change of them is an improvement.
  const auto before = review->old_object.is_object() ? settings_of(review->old_object) : ClusterSettings{};
  const auto errors = before ? refuse_change(*before, *after, pods) : api::FieldErrors();
  if (!errors.empty()) return refuse(review->uid, unprocessable, message_of(errors));
  std::vector<std::string> warnings;
  if (after->plain_nvidia_is_whole && !(before && before->plain_nvidia_is_whole))
    warnings.emplace_back(plain_nvidia_warning);
  return accept(review->uid, review->object, review->object, warnings);
}

Result<ClusterSettings, api::FieldErrors> read_settings_object(std::string_view json) {
  const auto object = api::parse(json);
  if (!object)
    return tl::unexpected(api::FieldErrors{{.field = "", .value = "", .sentence = object.error()}});
  if (!object->is_object())
    return tl::unexpected(api::FieldErrors{{.field = "", .value = "", .sentence = "it is no ConfigMap"}});
  return settings_of(*object);
}

}  // namespace carve::cluster
