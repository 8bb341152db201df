// The pods with slices that the API server has shown: their nodes, namespaces and paying accounts. A node's
// usage records are checked against them, so that a hostile node can't charge
// accounts whose pods it never had.
//
// Pods that were deleted are remembered, because their records may be read later: the newest 100,000 of them.
// Pods that were deleted before the first list, or between two lists, were never seen. Records from these times
// are accepted without this check, because honest nodes have such records too.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "kubernetes/api/answers.h"
#include "ledger/usage_record.h"

namespace carve::controller {

inline constexpr size_t max_remembered_pods = 100'000;
// How far a node's clock may differ from the controller's.
inline constexpr int64_t max_clock_difference_ns = 600'000'000'000;
// How long the API server may take to show a new pod.
inline constexpr int64_t max_watch_delay_ns = 120'000'000'000;

class PodEvidence {
 public:
  // Take the pods with label carve.dev/sliced. Times are UTC in ns.
  void replaced(const kubernetes::ObjectsByUid&, int64_t now_ns);
  void changed(const kubernetes::ObjectMeta&);
  void removed(const kubernetes::ObjectMeta&, int64_t now_ns);

  enum class Verdict : uint8_t {
    accepted,
    refused,
    undecided,  // The pod may be too new for the watch. Decide later.
  };
  struct Decision {
    Verdict verdict = Verdict::accepted;
    std::string reason = {};  // Why the record is refused or undecided.
  };
  // Returns whether `node` may have had this slice. `heard_ns` is when the watch of the pods last received
  // something. A record without a pod is accepted.
  Decision check(const ledger::UsageRecord&, const std::string& node, int64_t heard_ns) const;

  size_t pods() const { return pods_.size(); }  // Including deleted ones.

 private:
  struct Pod {
    std::string node;  // Empty before it is bound.
    std::string name_space, name;
    std::string account;
    int64_t deleted_ns = 0;  // 0 while it exists.
  };
  static Pod pod_of(const kubernetes::ObjectMeta&);
  void delete_pod(const std::string& uid, Pod&, int64_t now_ns);

  std::map<std::string, Pod> pods_;        // By uid.
  std::deque<std::string> deleted_;        // Their uids, in the order of their deletion.
  int64_t complete_since_ns_ = INT64_MAX;  // Every pod that existed later than this was seen.
};

}  // namespace carve::controller
