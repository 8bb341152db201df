// Derives a slice's limits in the kernel from its quotas and from the cgroups in which its processes run.
#pragma once

#include "node/slice/node_state.h"

namespace carve::node {

// Returns the limits and cgroups of the slice, or why the guard cannot protect it.
SliceProtection protection_of(const NodeState&, const LiveSlice&);

// Gives the guard the slice's current limits and cgroups. Adds an event if a guarded node cannot protect it.
void protect(NodeState&, const LiveSlice&);

// Returns the bytes beyond its quota at which a slice on a device is killed. Memory that no request announces,
// such as page tables, is counted only when it has been allocated; most of it belongs to a context.
Bytes tolerance(Bytes context);

// Returns the path of the cgroup v2 that /proc/PID/cgroup shows as `line`; empty if it is outside the mount.
std::string cgroup_path(const CgroupTree&, const std::string& line);

}  // namespace carve::node
