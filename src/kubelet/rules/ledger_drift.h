// What the agent's ledger has and the annotations of the node's pods do not: a slice of a pod that is gone
// and whose processes run on, a slice that is larger than its pod's annotation because its programs hold the
// memory, a slice that was granted without a pod. The coordinator's books do not know of it, so they may
// grant the memory again, and the agent then refuses the later start. A pod whose slice is not granted yet is
// no drift: its container has not started.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kube/answers.h"
#include "kube/api_client.h"
#include "wire/api/slice.h"
#include "wire/kube/node_ledger.h"

namespace carve::kubelet {

// A slice outlives its pod's object for a moment, and follows a changed annotation a moment later.
inline constexpr kube::Nanoseconds drift_patience_ns = 30 * kube::second_ns;

// `pods`: this node's, by uid. Returns the parts in the order of slices and devices.
std::vector<kube::LedgerPart> find_drift(const std::vector<api::Slice>&, const std::string& node,
                                         const kube::ObjectsByUid& pods);

// Keeps what is found until it has lasted for drift_patience_ns. It has no clock.
class LastingDrift {
 public:
  // What an earlier carve-kubelet has written lasts already.
  void assume(const kube::NodeLedger& written);
  // Takes what is found now; returns what has lasted.
  kube::NodeLedger lasting(const std::vector<kube::LedgerPart>& found, kube::Nanoseconds now);

 private:
  using Key = std::pair<std::string, Uuid>;  // Slice and device.
  struct Seen {
    kube::LedgerPart part;
    kube::Nanoseconds since = 0;
  };
  std::map<Key, Seen> seen_;
};

}  // namespace carve::kubelet
