// Records the slice in which each process was seen, because the cgroup of an ended process cannot be read.
//
// The agent reads the slices' cgroups 20 times a second while ended processes are audited. A process that
// lives for less may be missed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace carve::node {

class SliceMembers {
 public:
  static constexpr size_t max_kept = 16384;
  static constexpr uint64_t kept_us = 30'000'000;
  // Maximum time for which a process may be seen before it opens a context or after it closed its last one.
  static constexpr uint64_t slack_us = 1'000'000;

  struct Slice {
    uint64_t id = 0;
    std::string name;
  };

  // Records the processes that are in the slice now. Times are in microseconds of UTC.
  void see(const Slice&, const std::vector<int>& pids, uint64_t now_us);
  // Returns the slice of the process that used a device from `start_us` to `end_us`, or null.
  const Slice* find(pid_t, uint64_t start_us, uint64_t end_us) const;

 private:
  struct Seen {
    Slice slice;
    uint64_t first_us = 0, last_us = 0;
  };

  std::unordered_map<pid_t, Seen> seen_;
};

}  // namespace carve::node
