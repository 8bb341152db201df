// The processes of slices that ended a short time ago. The kernel's log may name a process after its end
// (node/devices/kernel_log.h).
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>

namespace carve::node {

class EndedProcesses {
 public:
  static constexpr size_t max_kept = 1024;

  struct Owner {
    pid_t pid = 0;
    uint64_t slice = 0;
    std::string name;  // Of the slice.
  };

  void add(Owner owner) {
    if (owners_.size() == max_kept) owners_.pop_back();
    owners_.push_front(std::move(owner));
  }

  // Returns the slice of the last process with this id, or null.
  const Owner* find(pid_t pid) const {
    const auto found = std::ranges::find(owners_, pid, &Owner::pid);
    return found == owners_.end() ? nullptr : &*found;
  }

 private:
  std::deque<Owner> owners_;  // Newest first.
};

}  // namespace carve::node
