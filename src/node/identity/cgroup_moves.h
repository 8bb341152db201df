// Finds processes that moved from one slice's cgroup to another's. In the host's cgroup tree the kernel
// allows this to uid 0 even without capabilities; the process's memory is then charged to the other slice.
//
// The cgroups are read at each sample from the driver. A process that moves before it was seen in its first
// slice is recognised by its parent, or as the program that entered that slice.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "os/process.h"

namespace carve::node {

struct CgroupMove {
  os::ProcessId process;
  uint64_t from = 0, to = 0;  // Ids of slices.

  friend bool operator==(const CgroupMove&, const CgroupMove&) = default;
};

// Returns the text of an event about a move.
std::string moved_text(pid_t, const std::string& from, const std::string& to);

class CgroupMoves {
 public:
  // A slice with a cgroup that the agent made.
  struct Members {
    uint64_t slice = 0;
    os::ProcessId root;  // The program that entered the slice; pid 0 if there is none.
    std::vector<int> pids;
  };
  using Stat = std::function<std::optional<os::ProcessStat>(pid_t)>;

  // Returns the moves since the last call. `stat` is called once for each new process.
  std::vector<CgroupMove> find(const std::vector<Members>&, const Stat& stat = os::stat_of);

 private:
  struct Known {
    uint64_t start = 0;
    uint64_t slice = 0;
    uint64_t seen = 0;  // Number of the last call that saw the process.
  };

  std::map<pid_t, Known> known_;
  uint64_t calls_ = 0;
};

}  // namespace carve::node
