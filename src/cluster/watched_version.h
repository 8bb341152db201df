// The API server's version, read every 10 minutes, because a control plane is upgraded while this program
// runs. Without an answer the last one stays.
#pragma once

#include <memory>
#include <optional>

#include "kube/answers.h"
#include "kube/api_client.h"

namespace carve::cluster {

inline constexpr kube::Nanoseconds version_interval_ns = 600 * kube::second_ns;
inline constexpr kube::Nanoseconds version_retry_ns = 10 * kube::second_ns;  // Until the first answer.

class WatchedVersion {
 public:
  explicit WatchedVersion(kube::ApiClient& client) : client_(client) { poll(); }

  const std::optional<kube::ServerVersion>& now() const { return version_; }  // None: not read yet.

 private:
  void poll();
  void answered(const kube::ApiAnswer&);

  kube::ApiClient& client_;
  std::optional<kube::ServerVersion> version_;
  std::unique_ptr<kube::ApiCall> call_, timer_;
};

}  // namespace carve::cluster
