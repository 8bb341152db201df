// A Lease, read each second over an ApiClient: whether this host's holder has it (LeaseView has the rules).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kube/api_client.h"
#include "kube/lease_view.h"

namespace carve::kube {

class WatchedLease {
 public:
  // `path`: of the Lease, "/apis/coordination.k8s.io/v1/namespaces/carve-system/leases/carve-scheduler".
  // `changed` is called from the client's callbacks after is_held() has changed, at most lease_poll_ns later.
  WatchedLease(ApiClient&, std::string path, std::string host, std::function<void(bool is_held)> changed);

  // Returns whether a write of at most max_fenced_write_ns may begin now. Ask again before each one.
  bool is_held() const { return view_.is_held(client_.now()); }
  // Returns what is the same as long as no other holder was there; empty: the Lease does not say.
  std::string term() const { return view_.term(); }
  // Returns why it is not held; empty: it is, or it was held too long ago.
  const std::string& problem() const { return problem_.empty() ? view_.problem() : problem_; }

 private:
  void poll();
  void answered(const ApiAnswer&, Nanoseconds sent);

  ApiClient& client_;
  const std::string path_;
  const std::function<void(bool)> changed_;
  LeaseView view_;
  std::string problem_;  // Of the last request; empty: it has none.
  bool was_held_ = false;
  std::unique_ptr<ApiCall> call_, timer_;
};

}  // namespace carve::kube
