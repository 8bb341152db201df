// Makes the scheduler retry a waiting pod. The scheduler retries a rejected pod after each change of the
// cluster, but may see a change before the cache's watch delivers it. The cache then rejects the pod again,
// and the scheduler's next attempt may be five minutes away.
//
// Each rejection is therefore checked again after 2 s, unless the scheduler has retried the pod by then. If
// the pod fits, its label carve.dev/retry gets another value, because the scheduler treats a changed label of
// a waiting pod as a change of the cluster.
//
// The pod has to fit on one of the nodes in the scheduler's request, because its selector and the taints
// exclude the others. However, the scheduler stops its search at 100 nodes at the earliest, so a request with
// that many nodes may lack some; then any node of the cluster counts. The next search begins after the last
// node searched. The pod is therefore retried until its requests have contained as many names as there are
// nodes (500 names per request with 5,000 nodes), and less and less often after that.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/api/api_client.h"
#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

inline constexpr const char* retry_label = "carve.dev/retry";  // Its value is the number of writes.
inline constexpr kubernetes::Nanoseconds min_retry_interval_ns = 2 * kubernetes::second_ns;
inline constexpr kubernetes::Nanoseconds max_retry_interval_ns = 300 * kubernetes::second_ns;
// Limit per round, because each check filters all nodes.
inline constexpr size_t max_retry_checks = 16;
// A request with this many nodes may lack some (minFeasibleNodesToFind, pkg/scheduler/schedule_one.go, 1.36).
inline constexpr size_t min_sampled_nodes = 100;

class RetryWriter {
 public:
  // `fence` returns why no write may start now, or an empty text if one may.
  RetryWriter(kubernetes::ApiClient& client, Cache& cache, std::function<std::string()> fence);

  // Records that none of the nodes in the scheduler's request can serve the pod.
  void refused(const kubernetes::ObjectMeta& pod, std::span<const std::string_view> nodes);
  // Must be called when a node can serve the pod, or when the pod is gone.
  void forget(const std::string& uid) { waiting_.erase(uid); }
  size_t pods() const { return waiting_.size(); }

 private:
  struct Waiting {
    kubernetes::ObjectMeta pod;
    kubernetes::Nanoseconds interval = min_retry_interval_ns;
    kubernetes::Nanoseconds check_at = 0;  // 0 once the last rejection has been checked.
    unsigned writes = 0;
    size_t asked = 0;  // Number of names in requests since the interval was raised.
    // The sorted names in the last request. Null if any node counts.
    std::shared_ptr<const std::vector<std::string>> nodes;
    std::unique_ptr<kubernetes::ApiCall> call;
  };

  void turn();
  bool fits(const Waiting&);
  void write(Waiting&);

  kubernetes::ApiClient& client_;
  Cache& cache_;
  const std::function<std::string()> fence_;
  std::map<std::string, Waiting> waiting_;  // By the pod's uid.
  // The names in the last request with few nodes, which are mostly the same for the waiting pods of one
  // queue.
  std::shared_ptr<const std::vector<std::string>> last_nodes_;
  std::unique_ptr<kubernetes::ApiCall> timer_;
};

}  // namespace carve::kubernetes::coordinator
