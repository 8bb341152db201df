#include "node/reconcile/ended_audit.h"

#include <fmt/format.h>

namespace carve::node {

std::vector<EndedFinding> EndedAudit::judge(const std::vector<AccountedObserved>& processes) {
  std::vector<EndedFinding> out;
  std::map<unsigned, uint64_t> unknown;
  ++samples_;
  for (const AccountedObserved& p : processes) {
    const Key key{p.device, p.pid, p.start_us};
    const auto decided = decided_.find(key);
    const bool is_decided = decided != decided_.end() || p.is_decided || p.known_as == KnownAs::attached;
    if (is_decided || !p.is_running) decided_[key] = samples_;
    if (is_decided || p.is_running || !p.is_shared || p.peak.count == 0) continue;
    if (p.known_as == KnownAs::unknown) {
      ++unknown[p.device];
      continue;
    }
    const std::string used =
        fmt::format("process {} used {} of device {} for {:.1f} s", p.pid, text(p.peak).c_str(), p.device,
                    static_cast<double>(p.active_ms) / 1000);
    if (!p.slice)
      out.push_back({{}, "", used + " and has ended; it never attached, and its slice is unknown", {}});
    else if (p.limited)
      out.push_back(
          {p.slice, p.slice_name, used + " without having attached, and has ended", ViolationKind::bypass});
    else
      out.push_back({p.slice, p.slice_name, used + " and has ended; the slice has no isolation", {}});
  }
  for (const auto& [device, count] : unknown)
    out.push_back(
        {{},
         "",
         fmt::format("{} ended processes of device {} were not audited, because too many ended in a "
                     "short time",
                     count, device),
         {}});
  std::erase_if(decided_, [&](const auto& one) { return one.second + kept_samples < samples_; });
  return out;
}

}  // namespace carve::node
