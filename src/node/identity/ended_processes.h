// The slices' processes that ended recently. The kernel's log (node/devices/kernel_log.h) and NVML's
// accounting (node/devices/nvml_accounting.h) may name a process after its end.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "node/reconcile/ended_audit.h"

namespace carve::node {

// The time during which a process was attached, in microseconds of UTC: from its start until the agent
// noticed its end.
struct AttachedSpan {
  uint64_t first_us = 0, last_us = 0;

  // Returns whether this is the process whose context began at `start_us`, rather than an earlier or later
  // one with the same pid. A process's start is known to within 10 ms, and the clocks drift.
  bool covers(uint64_t start_us) const {
    return start_us + 1'000'000 >= first_us && start_us <= last_us + 100'000;
  }
};

class EndedProcesses {
 public:
  static constexpr size_t max_kept = 16384;

  struct Owner {
    pid_t pid = 0;
    uint64_t slice = 0;
    std::string name;  // Name of the slice.
    AttachedSpan span;
  };

  void add(Owner owner) {
    if (owners_.size() == max_kept) {
      forgotten_us_ = std::max(forgotten_us_, owners_.back().span.last_us);
      spans_.erase(spans_.lower_bound(owners_.back().pid));  // The oldest span of this pid.
      owners_.pop_back();
    }
    spans_.emplace(owner.pid, owner.span);
    owners_.push_front(std::move(owner));
  }

  // Returns the slice of the last process with this pid, or null.
  const Owner* find(pid_t pid) const {
    const auto found = std::ranges::find(owners_, pid, &Owner::pid);
    return found == owners_.end() ? nullptr : &*found;
  }

  // Returns whether the process with this pid and a context that began at `start_us` was attached. If
  // `start_us` is 0, the time is unknown and only the pid is compared.
  KnownAs known_as(pid_t pid, uint64_t start_us) const {
    const auto [begin, end] = spans_.equal_range(pid);
    for (auto span = begin; span != end; ++span)
      if (start_us == 0 || span->second.covers(start_us)) return KnownAs::attached;
    return start_us <= forgotten_us_ && forgotten_us_ != 0 ? KnownAs::unknown : KnownAs::unattached;
  }

 private:
  std::deque<Owner> owners_;                  // Newest first.
  std::multimap<pid_t, AttachedSpan> spans_;  // Spans of the same processes, oldest first for each pid.
  uint64_t forgotten_us_ = 0;                 // Latest end of a dropped process.
};

}  // namespace carve::node
