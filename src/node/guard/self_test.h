// Tests whether an attached guard is in force. A program can be attached and never run, for example if the
// security module `bpf` is not active, so the agent does not rely on the attachment.
//
// The test takes a few milliseconds, and about as long as creating a CUDA context for each device.
#pragma once

#include <string>
#include <vector>

#include "core/failure.h"
#include "node/guard/memory_guard.h"

namespace carve::node {

// The slice of the self-test. Ids of usage records are never this large.
inline constexpr uint64_t probe_slice = UINT64_MAX;

// In the cgroup `probe_cgroup`, which must exist and be empty, requests memory beyond a limit of 0 through the
// control node, by a 64-bit and a 32-bit system call. Both must be refused. The same request of this process
// must not be refused. No request names an object of the driver, so none allocates.
Outcome<void> test_refusal(MemoryGuard&, const std::string& probe_cgroup, const std::string& control_node);

// Runs a program in `probe_cgroup` that allocates memory of the device and prints a line; then closes its
// input and waits for its end. The allocation must be counted, and its charge must be released.
Outcome<void> test_count(MemoryGuard&, const std::string& probe_cgroup, unsigned minor,
                         const std::vector<std::string>& program);

}  // namespace carve::node
