// Which slice a process belongs to. The process is never asked: the kernel is.
//
//   1. its cgroup: the one that the agent made for the slice, or the container's
//   2. its pid namespace, for a container that has no cgroup of its own
//   3. its ancestors: a slice's first process, a process that attached, or the slice's supervisor, to whom
//      orphans return because it is a subreaper
//
// A process leaves a cgroup only with the right to write another one's cgroup.procs, and its ancestors
// only by the death of all of them. Costs one read of /proc/PID/cgroup, 15 us, and one of each ancestor's
// stat.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "node/os/process.h"

namespace carve::node {

using Cgroups = std::map<std::string, std::string>;  // Controllers -> path; the v2 line has the empty name.

struct ContainerIdentity {
  ProcessId init;
  Cgroups cgroups;             // Those of its lines that are its own (distinguishing()).
  uint64_t pid_namespace = 0;  // 0: the agent's.
};

struct SliceIdentity {
  std::string cgroup;  // The v2 path of the agent's making; empty: none.
  std::vector<ContainerIdentity> containers;
  ProcessId root;        // The process that entered.
  ProcessId supervisor;  // Not itself inside; its descendants are.
  std::set<ProcessId> attached;
};

// The kernel's answers; tests give their own.
struct World {
  std::function<std::optional<ProcessStat>(pid_t)> stat = stat_of;
  std::function<Cgroups(pid_t)> cgroups = cgroups_of;
  std::function<uint64_t(pid_t)> pid_namespace = pid_namespace_of;
};

// The lines of a container that tell it from the agent and from the machine: not the root, not the agent's
// own cgroup or one above it.
Cgroups distinguishing(const Cgroups& containers, const Cgroups& agents);

// The position of its slice, or nothing.
std::optional<size_t> slice_of(pid_t, const std::vector<const SliceIdentity*>& slices, const World& = {});

// Whether `path` is `top` or lies below it.
bool is_under(std::string_view path, std::string_view top);

}  // namespace carve::node
