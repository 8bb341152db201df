#include "kubernetes/coordinator/watched_version.h"

#include "os/log.h"

namespace carve::kubernetes::coordinator {

void WatchedVersion::poll() {
  timer_ = client_.after(version_ ? version_interval_ns : version_retry_ns, [this] { poll(); });
  call_ = client_.send({.target = "/version", .deadline_ns = version_retry_ns},
                       [this](const kubernetes::ApiAnswer& answer) { answered(answer); });
}

void WatchedVersion::answered(const kubernetes::ApiAnswer& answer) {
  const auto ended = std::move(call_);
  if (!answer.is_success()) return;
  auto version = kubernetes::read_server_version(answer.body);
  if (!version) return os::log::warning("/version: {}", version.error());
  if (!version_ || version_->text != version->text)
    os::log::info("the API server is Kubernetes {}", version->text);
  version_ = std::move(*version);
}

}  // namespace carve::kubernetes::coordinator
