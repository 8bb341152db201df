// Finds and kills the processes of one slice.
//
// If a slice has a cgroup, the kernel reports when the cgroup is empty and kills its processes in one step.
// Without a cgroup, the slice's processes are the descendants of its program. They are scanned when one of
// them ends, once a second while the slice runs (so that a process is known before its parents end), and five
// times a second while the slice is lingering.
#pragma once

#include <set>
#include <vector>

#include "node/agent/agent.h"
#include "node/inspect/inspector.h"
#include "node/slice/live_slice.h"

namespace carve::node {

bool has_processes(LiveSlice&);

// For a slice without a cgroup, finds the live descendants of the slice's processes.
void scan_descendants(LiveSlice&);

// Kills the slice's programs with their descendants, but not its containers.
void kill_programs(LiveSlice&);

// Sends SIGTERM to the processes of the slice that are known now.
void terminate(LiveSlice&);

// Kills all processes of the slice. With a cgroup this includes processes that fork in the meantime. Without
// one a process may fork between the scan and the kill, so the call must be repeated until has_processes() is
// false.
void kill_all(LiveSlice&);

// Freezes the slice in one step, which no process inside can undo. Without a cgroup, stops only `process` and
// returns false.
bool freeze(LiveSlice&, const os::ProcessId& process);
void thaw(LiveSlice&);

SliceState state_of(const LiveSlice&);
// Returns the slice's processes that are known without a scan: those in its cgroup, the attached ones, and
// those of its containers.
std::set<pid_t> pids_of(const LiveSlice&);
// Includes the processes, as known to the inspector, if there is an inspector.
SliceView view_of(const LiveSlice&, const Inspector*);

}  // namespace carve::node
