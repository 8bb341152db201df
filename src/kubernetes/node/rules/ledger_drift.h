// Finds parts of slices in the agent's ledger that the annotations of the node's pods do not contain: a slice
// of a pod that is gone but whose processes still run, a slice that is larger than in its pod's annotation
// because its programs hold the memory, and a slice that was granted without a pod. The coordinator's cache
// does not contain them and may grant the memory again; the agent then rejects the later start. A pod whose
// slice has not been granted yet is not drift, because its container has not started.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kubernetes/api/answers.h"
#include "kubernetes/api/api_client.h"
#include "kubernetes/format/node_ledger.h"
#include "wire/api/slice.h"

namespace carve::kubernetes::node {

// For a short time, a slice may outlive its pod's object or lag behind a changed annotation.
inline constexpr kubernetes::Nanoseconds drift_patience_ns = 30 * kubernetes::second_ns;

// Returns the parts in the order of slices and devices. `pods` are those of this node, by uid.
std::vector<kubernetes::LedgerPart> find_drift(const std::vector<api::Slice>&, const std::string& node,
                                               const kubernetes::ObjectsByUid& pods);

// Reports findings only after they have lasted for drift_patience_ns. It has no clock.
class LastingDrift {
 public:
  // Treats the differences that an earlier carve-kubelet wrote as lasting.
  void assume(const kubernetes::NodeLedger& written);
  // Takes the current differences. Returns those that have lasted.
  kubernetes::NodeLedger lasting(const std::vector<kubernetes::LedgerPart>& found,
                                 kubernetes::Nanoseconds now);

 private:
  using Key = std::pair<std::string, Uuid>;  // Slice and device.
  struct Seen {
    kubernetes::LedgerPart part;
    kubernetes::Nanoseconds since = 0;
  };
  std::map<Key, Seen> seen_;
};

}  // namespace carve::kubernetes::node
