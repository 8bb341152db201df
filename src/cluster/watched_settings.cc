#include "cluster/watched_settings.h"

#include "cluster/webhook/review.h"
#include "cluster/webhook/settings_review.h"
#include "kube/answers.h"
#include "os/log.h"

namespace carve::cluster {

WatchedSettings::WatchedSettings(kube::ApiClient& client, std::string name_space,
                                 std::function<void()> changed)
    : client_(client),
      path_(fmt::format("/api/v1/namespaces/{}/configmaps/{}", name_space, settings_name)),
      changed_(std::move(changed)) {
  poll();
}

void WatchedSettings::poll() {
  timer_ = client_.after(settings_interval_ns, [this] { poll(); });
  if (call_) return;
  call_ = client_.send({.target = path_, .deadline_ns = settings_interval_ns},
                       [this](const kube::ApiAnswer& answer) { answered(answer); });
}

void WatchedSettings::answered(const kube::ApiAnswer& answer) {
  const auto ended = std::move(call_);
  const std::string before = std::exchange(problem_, answer.problem);
  if (answer.status == 404) problem_ = fmt::format("ConfigMap {} does not exist", settings_name);
  if (answer.status == 200) {
    auto settings = read_settings_object(answer.body);
    if (!settings) {
      problem_ = fmt::format("ConfigMap {}: {}", settings_name, message_of(settings.error()));
    } else {
      const auto object = kube::read_object(answer.body);
      const auto annotation =
          object ? object->annotations.find(settings_annotation) : decltype(object->annotations.end()){};
      pending_ = object && annotation != object->annotations.end() ? annotation->second : "";
      if (settings_ != *settings) {
        settings_ = std::move(*settings);
        changed_();
      }
    }
  }
  if (!problem_.empty() && problem_ != before) os::log::warning("{}", problem_);
}

void WatchedSettings::settle_unit(const std::function<PodsInUnits()>& pods) {
  if (!settings_ || write_) return;
  const auto change = pending_unit(*settings_, settings_->when_free ? pods() : PodsInUnits{});
  std::string body;
  if (change && change->blocked_by.empty()) {
    body = fmt::format(R"({{"metadata":{{"annotations":{{"{}":null}}}},"data":{{"gpuMemoryUnit":"{}",)"
                       R"("gpuMemoryUnitWhenFree":null}}}})",
                       settings_annotation, text(change->desired));
  } else {
    const std::string wanted = change ? pending_text(*change) : "";
    if (wanted == pending_) return;
    body = fmt::format(R"({{"metadata":{{"annotations":{{"{}":{}}}}}}})", settings_annotation,
                       wanted.empty() ? "null" : api::quoted(wanted));
  }
  write_ =
      client_.send({.method = "PATCH",
                    .target = path_,
                    .body = body,
                    .content_type = kube::merge_patch_type,
                    .deadline_ns = settings_interval_ns},
                   [this](const kube::ApiAnswer& answer) {
                     const auto ended = std::move(write_);
                     if (!answer.is_success())
                       os::log::warning("ConfigMap {} is not written: {}", settings_name, answer.problem);
                   });
}

}  // namespace carve::cluster
