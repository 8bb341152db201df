// The cgroups of replicas, in which their limits of CPU and memory hold: OWN/carve-replicas/HASH/NAME, below
// the cgroup of the controller's launcher, which makes and removes them. The folder carve-replicas stays: a
// hierarchy's root is changed with a capability alone, which the launcher gives up. A supervisor gets the
// open files cgroup.procs of its replica's cgroups, so that the program joins them before it is executed,
// also as another user. A program has no right to leave them.
//
// A cgroup is made before a start, or taken over if a former start left it. It is removed with the replica;
// one that still has processes is removed later: with the next replica, or by the next launcher.
//
// On a machine with cgroup v2 alone the agent moves the program into the cgroup of its slice
// (node/slice/cgroup.h). A process has one cgroup there, so limits hold for replicas without a slice only.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/failure.h"
#include "os/fd.h"
#include "runner/cgroup_hierarchy.h"

namespace carve::runner {

inline constexpr uint64_t min_cpu_limit_milli = 10;  // The kernel's least quota is 1 ms of 100 ms.

// Of one replica. 0: no limit.
struct ReplicaLimits {
  uint64_t cpu_milli = 0;  // Thousandths of a core.
  uint64_t memory_bytes = 0;
};

// Why a limit is not enforced on this machine, as sentences; empty: it is.
struct LimitProblems {
  std::string cpu;
  std::string memory;
  std::string with_slice;  // Of replicas that have a slice, beside the two.
};

// What a replica joins.
struct JoinedCgroups {
  std::vector<os::Fd> process_files;  // cgroup.procs, open for writing.
  std::string memory_events;          // The file that counts the processes killed by the limit; empty: none.
};

class ReplicaCgroups {
 public:
  // Finds out which limits can be enforced below `own`, and removes what former launchers left. `folder` is
  // that of the programs: controllers with different ones do not share cgroups.
  ReplicaCgroups(const OwnCgroups& own, const std::string& folder);

  const LimitProblems& problems() const { return problems_; }
  // Makes the cgroups of the limits that can be enforced. Fails if one of them cannot be made.
  Outcome<JoinedCgroups> make(const std::string& name, const ReplicaLimits&, bool has_slice);
  // Removes the cgroups of the replica, and those that had processes before.
  void remove(const std::string& name);

 private:
  // Where the cgroups with one controller are.
  struct Group {
    CgroupVersion version = CgroupVersion::v2;
    std::string directory;  // OWN/carve-replicas/HASH; empty: the limit cannot be enforced.
  };

  Outcome<std::string> make_directory(const Group&, const std::string& name);
  void remove_unused();

  Group cpu_, memory_;
  LimitProblems problems_;
  std::set<std::string> leftovers_;  // Names whose cgroups had processes when they were removed.
};

// Returns the cgroups of this process.
OwnCgroups read_own_cgroups();

// Returns how many processes of the cgroup its memory limit killed, from the text of memory.events (v2) or
// memory.oom_control (v1).
uint64_t memory_kills(std::string_view events);

}  // namespace carve::runner
