// Parts of slices in the agent's ledger that the annotations of the node's pods do not have: a slice of a pod
// that is gone but whose processes still run, a slice that is larger than its pod's annotation because its
// programs hold the memory, and a slice that was granted without a pod. The coordinator's cache does not know
// of them and may grant the memory again; the agent then refuses the later start. A pod whose slice is not
// granted yet is no drift: its container has not started.
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

// A slice may outlive its pod's object, and may follow a changed annotation, with a short delay.
inline constexpr kubernetes::Nanoseconds drift_patience_ns = 30 * kubernetes::second_ns;

// `pods` are this node's, by uid. Returns the parts in the order of slices and devices.
std::vector<kubernetes::LedgerPart> find_drift(const std::vector<api::Slice>&, const std::string& node,
                                               const kubernetes::ObjectsByUid& pods);

// Holds findings back until they have lasted for drift_patience_ns. It has no clock.
class LastingDrift {
 public:
  // Differences written by an earlier carve-kubelet count as lasting.
  void assume(const kubernetes::NodeLedger& written);
  // Takes the current differences and returns the lasting ones.
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
