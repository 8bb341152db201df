// Reads a Lease every second through an ApiClient to determine whether this host's holder has it (rules:
// LeaseView).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kubernetes/api/api_client.h"
#include "kubernetes/api/lease_view.h"

namespace carve::kubernetes {

class WatchedLease {
 public:
  // `path` is that of the Lease:
  // "/apis/coordination.k8s.io/v1/namespaces/carve-system/leases/carve-scheduler". `changed` is called in the
  // client's callbacks at most lease_poll_ns after is_held() has changed.
  WatchedLease(ApiClient&, std::string path, std::string host, std::function<void(bool is_held)> changed);

  // Returns whether a write of at most max_fenced_write_ns may begin now. Check it before each write.
  bool is_held() const { return view_.is_held(client_.now()); }
  // Returns a text that changes whenever the Lease has had another holder. Empty if unknown.
  std::string term() const { return view_.term(); }
  // Returns why the Lease is not held. Empty if it is held, or if the last renewal is too old.
  const std::string& problem() const { return problem_.empty() ? view_.problem() : problem_; }

 private:
  void poll();
  void answered(const ApiAnswer&, Nanoseconds sent);

  ApiClient& client_;
  const std::string path_;
  const std::function<void(bool)> changed_;
  LeaseView view_;
  std::string problem_;  // Why the last request failed; empty if it did not.
  bool was_held_ = false;
  std::unique_ptr<ApiCall> call_, timer_;
};

}  // namespace carve::kubernetes
