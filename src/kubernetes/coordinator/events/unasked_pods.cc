#include "kubernetes/coordinator/events/unasked_pods.h"

namespace carve::kubernetes::coordinator {

std::vector<std::string> UnaskedPods::due(const std::vector<std::string>& unbound,
                                          kubernetes::Nanoseconds now) {
  std::map<std::string, Pod> still;
  std::vector<std::string> out;
  for (const std::string& uid : unbound) {
    Pod& pod = still[uid] = pods_[uid];
    if (pod.quiet_until == 0) {
      pod.quiet_until = now + unasked_patience_ns;
    } else if (now >= pod.quiet_until && out.size() < max_looks) {
      pod.quiet_until = now + look_again_ns;
      out.push_back(uid);
    }
  }
  pods_ = std::move(still);
  return out;
}

}  // namespace carve::kubernetes::coordinator
