#include "node/identity/cgroup_moves.h"

#include <fmt/format.h>

namespace carve::node {

std::string moved_text(pid_t pid, const std::string& from, const std::string& to) {
  return fmt::format(
      "process {} moved itself from slice {} into slice {}, which is now charged for the process", pid, from,
      to);
}

std::vector<CgroupMove> CgroupMoves::find(const std::vector<Members>& slices, const Stat& stat) {
  std::vector<CgroupMove> out;
  ++calls_;
  for (const Members& members : slices)
    if (members.root) {
      // The program entered this slice, whatever cgroup it is in now.
      Known& root = known_.try_emplace(members.root.pid, Known{members.root.start, members.slice, calls_})
                        .first->second;
      if (root.start != members.root.start) root = {members.root.start, members.slice, calls_};
      root.seen = calls_;
    }
  for (const Members& members : slices)
    for (const pid_t pid : members.pids) {
      const auto known = known_.find(pid);
      if (known != known_.end() && known->second.slice == members.slice) {
        known->second.seen = calls_;
        continue;
      }
      const auto now = stat(pid);
      if (!now) continue;
      uint64_t from = 0;
      if (known != known_.end() && known->second.start == now->id.start) {
        from = known->second.slice;
      } else if (const auto parent = known_.find(now->parent);
                 parent != known_.end() && parent->second.seen + 1 >= calls_) {
        from = parent->second.slice;
      }
      known_[pid] = {now->id.start, members.slice, calls_};
      if (from != 0 && from != members.slice) out.push_back({now->id, from, members.slice});
    }
  std::erase_if(known_, [this](const auto& one) { return one.second.seen != calls_; });
  return out;
}

}  // namespace carve::node
