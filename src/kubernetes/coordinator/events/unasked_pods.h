// Finds waiting pods for which the scheduler does not call the extender. The scheduler's own plugin
// NodeResourcesFit rejects nodes whose totals are used up before it calls an extender, so the extender's
// responses do not explain why such a pod waits. Pure: it has no clock.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kubernetes/api/api_client.h"

namespace carve::kubernetes::coordinator {

// The scheduler calls the extender for a new pod within this time, and for a waiting pod after each change of
// the cluster.
inline constexpr kubernetes::Nanoseconds unasked_patience_ns = 10 * kubernetes::second_ns;
inline constexpr kubernetes::Nanoseconds look_again_ns = 60 * kubernetes::second_ns;
// The extender's response covers only the nodes that pass the scheduler's own rules. A check soon afterwards
// would report the same reason with other numbers.
inline constexpr kubernetes::Nanoseconds asked_quiet_ns = 600 * kubernetes::second_ns;
inline constexpr size_t max_looks = 32;  // Per round, because each check reads all nodes.

class UnaskedPods {
 public:
  // Records that the scheduler has called the extender for the pod.
  void asked(const std::string& uid, kubernetes::Nanoseconds now) {
    pods_[uid].quiet_until = now + asked_quiet_ns;
  }
  void forget(const std::string& uid) { pods_.erase(uid); }
  // Returns the pods to check now, at most max_looks. `unbound` contains all waiting pods.
  std::vector<std::string> due(const std::vector<std::string>& unbound, kubernetes::Nanoseconds now);
  size_t pods() const { return pods_.size(); }

 private:
  struct Pod {
    kubernetes::Nanoseconds quiet_until = 0;  // 0 before the first check.
  };
  std::map<std::string, Pod> pods_;  // By uid.
};

}  // namespace carve::kubernetes::coordinator
