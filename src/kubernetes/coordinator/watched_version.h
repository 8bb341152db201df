// Tracks the API server's version, which it reads every 10 minutes because a control plane may be upgraded
// while this program runs. If a read fails, the last version is kept.
#pragma once

#include <memory>
#include <optional>

#include "kubernetes/api/answers.h"
#include "kubernetes/api/api_client.h"

namespace carve::kubernetes::coordinator {

inline constexpr kubernetes::Nanoseconds version_interval_ns = 600 * kubernetes::second_ns;
inline constexpr kubernetes::Nanoseconds version_retry_ns =
    10 * kubernetes::second_ns;  // Until the first response.

class WatchedVersion {
 public:
  explicit WatchedVersion(kubernetes::ApiClient& client) : client_(client) { poll(); }

  const std::optional<kubernetes::ServerVersion>& now() const {
    return version_;
  }  // Empty before the first read.

 private:
  void poll();
  void answered(const kubernetes::ApiAnswer&);

  kubernetes::ApiClient& client_;
  std::optional<kubernetes::ServerVersion> version_;
  std::unique_ptr<kubernetes::ApiCall> call_, timer_;
};

}  // namespace carve::kubernetes::coordinator
