// Makes the scheduler try a waiting pod again. The scheduler tries a refused pod again at each change of the
// cluster, and may see a change before the cache's watch delivers it. The cache then refuses the pod once
// more, and the scheduler's own next attempt may be five minutes away.
//
// Each refusal is therefore checked once, 2 s later, unless the scheduler has tried the pod again. If the pod
// fits now, its label carve.dev/retry gets another value: a change of a waiting pod's labels is a change of
// the cluster.
//
// The pod has to fit on one of the nodes of the scheduler's request, because its selector and the taints
// exclude the others. The scheduler stops its search at 100 nodes at the earliest. A request with that many
// nodes may not have all of them, so any node of the cluster counts. The next search begins after the last
// node, so the pod is retried until its requests have had as many names as there are nodes (500 at a time of
// 5,000 nodes), and less and less often after that.
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
// Per turn. Each check filters all nodes.
inline constexpr size_t max_retry_checks = 16;
// Nodes of a request that may not have all (minFeasibleNodesToFind, pkg/scheduler/schedule_one.go, 1.36).
inline constexpr size_t min_sampled_nodes = 100;

class RetryWriter {
 public:
  // `fence` returns why no write may begin now; empty if one may.
  RetryWriter(kubernetes::ApiClient& client, Cache& cache, std::function<std::string()> fence);

  // Records that none of these nodes of the scheduler's request can serve the pod.
  void refused(const kubernetes::ObjectMeta& pod, std::span<const std::string_view> nodes);
  // Called when a node can serve the pod, or the pod is gone.
  void forget(const std::string& uid) { waiting_.erase(uid); }
  size_t pods() const { return waiting_.size(); }

 private:
  struct Waiting {
    kubernetes::ObjectMeta pod;
    kubernetes::Nanoseconds interval = min_retry_interval_ns;
    kubernetes::Nanoseconds check_at = 0;  // 0 when the last refusal has been checked.
    unsigned writes = 0;
    size_t asked = 0;  // Names in requests since the interval was raised.
    // The names of the last request, sorted. Null if any node counts.
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
  // Names of the last request with few nodes. The waiting pods of one queue mostly have the same ones.
  std::shared_ptr<const std::vector<std::string>> last_nodes_;
  std::unique_ptr<kubernetes::ApiCall> timer_;
};

}  // namespace carve::kubernetes::coordinator
