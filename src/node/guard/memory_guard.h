// The kernel guard as the agent uses it: limits, cgroups and findings of slices. KernelGuard implements it with
// BPF programs; tests use testing/guard_fake.h. Used by the loop's thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "core/failure.h"
#include "node/guard/guard_maps.h"

namespace carve::node {

// The limits of one slice on one device.
struct GuardLimit {
  unsigned minor = 0;  // N of /dev/nvidiaN.
  Bytes bytes;         // Beyond this, requests are refused.
  Bytes fatal;         // Beyond this, the slice must be killed.
};

struct GuardPartUsage {
  Bytes used, committed, peak;
};
struct GuardUsage {
  uint64_t refused = 0, denied = 0, unparsed = 0;
  uint64_t uncounted = 0;          // Allocations that could not be recorded.
  std::optional<unsigned> beyond;  // The part that exceeded its fatal limit.
  std::vector<GuardPartUsage> parts;
};

class MemoryGuard {
 public:
  virtual ~MemoryGuard() = default;

  // Sets the limits of a slice; its usage is kept. With `is_probe` its first allocation identifies the
  // device's allocator.
  virtual Outcome<void> set_limits(uint64_t slice, const std::vector<GuardLimit>& parts, bool is_probe) = 0;
  // Applies the slice's limits to all processes in the cgroup v2 at this path and below.
  virtual Outcome<void> add_cgroup(uint64_t slice, const std::string& path) = 0;
  virtual void remove_cgroup(const std::string& path) = 0;
  // Forgets the slice. Memory that its processes left allocated is no longer charged.
  virtual void remove_slice(uint64_t slice) = 0;
  // Returns the slices with limits, including those that an earlier agent added.
  virtual std::vector<uint64_t> slices() const = 0;
  virtual std::optional<GuardUsage> usage(uint64_t slice) const = 0;
  // Returns the findings since the last call.
  virtual std::vector<guard_finding> findings() = 0;
  // A descriptor that becomes readable when there are findings; -1 if there is none.
  virtual int findings_fd() const = 0;
  // Returns why the guard is no longer in force; empty if it is.
  virtual std::string trouble() const = 0;
};

}  // namespace carve::node
