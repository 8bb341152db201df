#include "node/identity/slice_members.h"

namespace carve::node {

void SliceMembers::see(const Slice& slice, const std::vector<int>& pids, uint64_t now_us) {
  if (seen_.size() + pids.size() > max_kept)
    std::erase_if(seen_, [now_us](const auto& one) { return one.second.last_us + kept_us < now_us; });
  for (const pid_t pid : pids) {
    if (pid == 0) continue;  // The process is in another pid namespace.
    auto known = seen_.find(pid);
    if (known == seen_.end()) {
      if (seen_.size() >= max_kept) continue;
      known = seen_.try_emplace(pid).first;
    }
    Seen& seen = known->second;
    if (seen.slice.id != slice.id) seen = {slice, now_us, now_us};
    seen.last_us = now_us;
  }
}

const SliceMembers::Slice* SliceMembers::find(pid_t pid, uint64_t start_us, uint64_t end_us) const {
  const auto known = seen_.find(pid);
  if (known == seen_.end()) return nullptr;
  const Seen& seen = known->second;
  return seen.first_us <= end_us + slack_us && seen.last_us + slack_us >= start_us ? &seen.slice : nullptr;
}

}  // namespace carve::node
