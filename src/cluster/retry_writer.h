// Asks the scheduler to try a waiting pod again. The scheduler tries a refused pod again at each change of
// the cluster, and may see a change before the watch of the books brings it. The books then refuse the pod
// once more, and the scheduler's own next try may be five minutes away.
//
// Each refusal is therefore checked once, 2 s later, if the scheduler has not asked again: if the pod fits
// now, its label carve.dev/retry gets another value, and a change of a waiting pod's labels is a change of
// the cluster.
//
// The pod has to fit on one of the nodes that the scheduler asked about: its selector and the taints keep it
// away from the others. The scheduler stops its search at 100 nodes at the earliest, so it has not looked at
// all nodes if it asked about so many: then any node counts. Its next search begins behind the last one, so
// the pod is tried until the questions have had as many names as there are nodes (of 5,000 nodes 500 are
// asked about at a time), and after that ever less often.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/books/books.h"
#include "kube/api_client.h"

namespace carve::cluster {

inline constexpr const char* retry_label = "carve.dev/retry";  // How often the coordinator has written it.
inline constexpr kube::Nanoseconds min_retry_interval_ns = 2 * kube::second_ns;
inline constexpr kube::Nanoseconds max_retry_interval_ns = 300 * kube::second_ns;
// Of one turn: each is a filter over all nodes.
inline constexpr size_t max_retry_checks = 16;
// Of a question that may not have all nodes (minFeasibleNodesToFind, pkg/scheduler/schedule_one.go, 1.36).
inline constexpr size_t min_sampled_nodes = 100;

class RetryWriter {
 public:
  // `fence`: returns why no write may begin now; empty: it may.
  RetryWriter(kube::ApiClient& client, Books& books, std::function<std::string()> fence);

  // The scheduler asked about these nodes, and none can serve the pod.
  void refused(const kube::ObjectMeta& pod, std::span<const std::string_view> nodes);
  // The scheduler asked, and a node can serve the pod; or the pod is gone.
  void forget(const std::string& uid) { waiting_.erase(uid); }
  size_t pods() const { return waiting_.size(); }

 private:
  struct Waiting {
    kube::ObjectMeta pod;
    kube::Nanoseconds interval = min_retry_interval_ns;
    kube::Nanoseconds check_at = 0;  // 0: the last refusal has been checked.
    unsigned writes = 0;
    size_t asked = 0;  // Names in the questions since the interval was raised.
    // The names of the last question, sorted. Null: any node counts.
    std::shared_ptr<const std::vector<std::string>> nodes;
    std::unique_ptr<kube::ApiCall> call;
  };

  void turn();
  bool fits(const Waiting&);
  void write(Waiting&);

  kube::ApiClient& client_;
  Books& books_;
  const std::function<std::string()> fence_;
  std::map<std::string, Waiting> waiting_;  // By the pod's uid.
  // Of the last question with few nodes: the waiting pods of one queue mostly have the same ones.
  std::shared_ptr<const std::vector<std::string>> last_nodes_;
  std::unique_ptr<kube::ApiCall> timer_;
};

}  // namespace carve::cluster
