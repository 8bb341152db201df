// The cgroups of replicas, which enforce their CPU and memory limits: OWN/carve-replicas/HASH/NAME, below the
// cgroup of the controller's launcher, which creates and removes them. The folder carve-replicas is not
// removed: creating it in a hierarchy's root needs a capability that the launcher drops. A supervisor gets
// the cgroup.procs files of its replica's cgroups as open files, so that the program joins the cgroups before
// it is executed, even as another user. A program has no right to leave them.
//
// A cgroup is created before a start, or reused if a previous start left it. It is removed with the replica.
// If it still contains processes, it is removed later: with the next replica, or by the next launcher.
//
// On a machine with only cgroup v2 the agent moves the program into the cgroup of its slice
// (node/identity/cgroup.h). A process is in only one cgroup there, so the limits apply only to replicas
// without a slice.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/failure.h"
#include "os/fd.h"
#include "runner/cgroup_hierarchy.h"

namespace carve::runner {

inline constexpr uint64_t min_cpu_limit_milli = 10;  // The kernel's minimum quota is 1 ms per 100 ms.

// Limits of one replica. 0 means no limit.
struct ReplicaLimits {
  uint64_t cpu_milli = 0;  // Thousandths of a core.
  uint64_t memory_bytes = 0;
};

// Messages that explain why a limit is not enforced on this machine. Empty if it is enforced.
struct LimitProblems {
  std::string cpu;
  std::string memory;
  std::string with_slice;  // For replicas with a slice, in addition to the others.
};

// The files through which a replica joins its cgroups.
struct JoinedCgroups {
  std::vector<os::Fd> process_files;  // cgroup.procs, open for writing.
  std::string memory_events;          // Counts the processes killed by the limit; empty if none.
};

class ReplicaCgroups {
 public:
  // Determines which limits can be enforced below `own`, and removes cgroups left by previous launchers.
  // `folder` is the programs' folder: controllers with different folders do not share cgroups.
  ReplicaCgroups(const OwnCgroups& own, const std::string& folder);

  const LimitProblems& problems() const { return problems_; }
  // Creates the cgroups of the enforceable limits. Fails if one of them cannot be created.
  Outcome<JoinedCgroups> make(const std::string& name, const ReplicaLimits&, bool has_slice);
  // Removes the cgroups of the replica, and those that could not be removed earlier because they contained
  // processes.
  void remove(const std::string& name);

 private:
  // The location of the cgroups with one controller.
  struct Group {
    CgroupVersion version = CgroupVersion::v2;
    std::string directory;  // OWN/carve-replicas/HASH; empty if the limit cannot be enforced.
  };

  Outcome<std::string> make_directory(const Group&, const std::string& name);
  void remove_unused();

  Group cpu_, memory_;
  LimitProblems problems_;
  std::set<std::string> leftovers_;  // Names of the cgroups that still contained processes.
};

// Returns the cgroups of this process.
OwnCgroups read_own_cgroups();

// Returns how many of the cgroup's processes its memory limit has killed, from the text of memory.events (v2)
// or memory.oom_control (v1).
uint64_t memory_kills(std::string_view events);

}  // namespace carve::runner
