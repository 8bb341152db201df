// Determines the slice of a process from the kernel's data, without trusting the process:
//
//   1. its cgroup: the one that the agent created for the slice, or the container's
//   2. its pid namespace, for a container without a cgroup of its own
//   3. its ancestors: the slice's first process, an attached process, or the slice's supervisor, which as a
//      subreaper becomes the parent of orphans
//
// A process can leave its cgroup only if it may write another cgroup.procs, and its ancestors only when all
// of them have ended. The cost is one read of /proc/PID/cgroup (8 us) and one read of stat for each ancestor
// (7 us). The search ends at the first ancestor that is older than the processes of every slice: a parent is
// never younger than its child, and neither is a process that adopts orphans.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "os/process.h"

namespace carve::node {

using Cgroups = std::map<std::string, std::string>;  // Paths by controllers; the v2 line has an empty name.

struct ContainerIdentity {
  os::ProcessId init;
  Cgroups cgroups;             // Only lines specific to the container (distinguishing()).
  uint64_t pid_namespace = 0;  // 0 means the agent's namespace.
};

struct SliceIdentity {
  std::string cgroup;  // The v2 path of the cgroup that the agent created; empty if none.
  std::vector<ContainerIdentity> containers;
  os::ProcessId root;        // The process that entered the slice.
  os::ProcessId supervisor;  // Not in the slice, but its descendants are.
  std::set<os::ProcessId> attached;
};

// Access to the kernel; tests pass their own.
struct World {
  std::function<std::optional<os::ProcessStat>(pid_t)> stat = os::stat_of;
  std::function<Cgroups(pid_t)> cgroups = os::cgroups_of;
  std::function<uint64_t(pid_t)> pid_namespace = os::pid_namespace_of;
};

// Returns the container's lines that differ from those of the agent and of the machine: neither the root, nor
// the agent's own cgroup, nor one above it.
Cgroups distinguishing(const Cgroups& containers, const Cgroups& agents);

// Returns the index of the process's slice; no value if it is in none. The overload with a pid reads the
// process first.
std::optional<size_t> slice_of(const os::ProcessStat&, const std::vector<const SliceIdentity*>& slices,
                               const World& = {});
std::optional<size_t> slice_of(pid_t, const std::vector<const SliceIdentity*>& slices, const World& = {});

inline constexpr int max_ancestors = 1024;  // Maximum number of ancestors that are searched.

// Returns whether a process with these cgroups and this pid namespace is in the container.
bool is_in(const ContainerIdentity&, const Cgroups&, uint64_t pid_namespace);

// Returns whether `path` is `top` or below it.
bool is_under(std::string_view path, std::string_view top);

}  // namespace carve::node
