#include "kubernetes/coordinator/watched_settings.h"

#include "kubernetes/api/answers.h"
#include "kubernetes/coordinator/webhook/review.h"
#include "kubernetes/coordinator/webhook/settings_review.h"
#include "os/log.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::coordinator {

WatchedSettings::WatchedSettings(kubernetes::ApiClient& client, const std::string& name_space,
                                 std::function<void()> changed, uint64_t seed)
    : client_(client),
      path_(fmt::format("/api/v1/namespaces/{}/configmaps/{}", name_space, settings_name)),
      changed_(std::move(changed)) {
  poll();
  watch_.emplace(client_,
                 kubernetes::Selection{.path = fmt::format("/api/v1/namespaces/{}/configmaps", name_space),
                                       .label_selector = "",
                                       .field_selector = fmt::format("metadata.name={}", settings_name)},
                 kubernetes::ListWatch::Sink{.replaced = [](const kubernetes::ObjectsByUid&) {},
                                             .changed = [this](const kubernetes::ObjectMeta&) { read(); },
                                             .removed = [this](const kubernetes::ObjectMeta&) { read(); }},
                 seed);
}

void WatchedSettings::poll() {
  timer_ = client_.after(settings_interval_ns, [this] { poll(); });
  read();
}

void WatchedSettings::read() {
  is_stale_ = call_ != nullptr;
  if (call_) return;
  call_ = client_.send({.target = path_, .deadline_ns = settings_interval_ns},
                       [this](const kubernetes::ApiAnswer& answer) { answered(answer); });
}

void WatchedSettings::answered(const kubernetes::ApiAnswer& answer) {
  const auto ended = std::move(call_);
  const std::string before = std::exchange(problem_, answer.problem);
  if (answer.status == 404) problem_ = fmt::format("ConfigMap {} does not exist", settings_name);
  if (answer.status == 200) {
    auto settings = read_settings_object(answer.body);
    if (!settings) {
      problem_ = fmt::format("ConfigMap {}: {}", settings_name, message_of(settings.error()));
    } else {
      const auto object = kubernetes::read_object(answer.body);
      const auto text_of = [&](const char* annotation) {
        if (!object) return std::string();
        const auto found = object->annotations.find(annotation);
        return found == object->annotations.end() ? std::string() : found->second;
      };
      pending_ = text_of(settings_annotation);
      effective_ = text_of(effective_annotation);
      if (settings_ != *settings) {
        settings_ = std::move(*settings);
        changed_();
      }
    }
  }
  if (!problem_.empty() && problem_ != before) os::log::warning("{}", problem_);
  if (is_stale_) read();
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
  patch(body);
}

void WatchedSettings::mark_effective(Strategy used) {
  if (!settings_ || write_) return;
  ClusterSettings effective = *settings_;
  effective.strategy = used;
  const std::string wanted = api::Json(setting_texts(effective)).dump();
  if (wanted == effective_) return;
  patch(fmt::format(R"({{"metadata":{{"annotations":{{"{}":{}}}}}}})", effective_annotation,
                    api::quoted(wanted)));
}

void WatchedSettings::patch(const std::string& body) {
  write_ = client_.send({.method = "PATCH",
                         .target = path_,
                         .body = body,
                         .content_type = kubernetes::merge_patch_type,
                         .deadline_ns = settings_interval_ns},
                        [this](const kubernetes::ApiAnswer& answer) {
                          const auto ended = std::move(write_);
                          if (!answer.is_success())
                            os::log::warning("cannot write ConfigMap {}: {}", settings_name, answer.problem);
                        });
}

}  // namespace carve::kubernetes::coordinator
