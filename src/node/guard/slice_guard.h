// Which slices the kernel guard protects, and why it does not protect the others. Without a guard, or after it
// has failed, every slice is protected only by the guest library; the reason is always kept.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/enforcement.h"
#include "node/guard/memory_guard.h"

namespace carve::node {

// The limits and cgroups of a slice, as the guard applies them.
struct SliceProtection {
  uint64_t slice = 0;  // Id of its usage record.
  std::vector<GuardLimit> limits;
  std::vector<std::string> cgroups;  // Paths of cgroups v2 that contain only processes of the slice.
  std::string obstacle;              // Why it cannot be protected; empty if it can.
};

// The guard of this node, for display.
struct GuardStatus {
  Enforcement memory{enforced_by_guest, "", {}};  // Level and reason.
  std::string hook;         // How the check is attached; empty if the level is not `kernel`.
  bool is_expected = true;  // The level is what the options and the devices allow.
  size_t slices = 0;        // Protected slices.
};

class SliceGuard {
 public:
  // There is no guard. `is_expected` means that the user or the devices rule it out.
  explicit SliceGuard(std::string reason = "", bool is_expected = true);
  // `guard` is in force. `hook` describes how it is attached.
  SliceGuard(std::unique_ptr<MemoryGuard> guard, std::string hook);

  GuardStatus status() const;
  // Protects the slice, or updates its limits and cgroups. Returns the enforcement of its memory limits, with a
  // reason if a guard was expected.
  Enforcement protect(const SliceProtection&);
  Enforcement enforcement_of(uint64_t slice) const;
  void forget(uint64_t slice);
  // Forgets slices that ended while no agent ran.
  void keep_only(const std::set<uint64_t>& slices);

  int findings_fd() const;  // -1 if there is no guard.
  // Returns the findings about protected slices since the last call. A slice beyond its limit is returned by each
  // call until it has ended, because the kernel drops findings that no agent reads.
  std::vector<guard_finding> findings();
  // Checks that the guard is still in force. Returns the reason once if it is not; then no slice is protected.
  std::string check();

 private:
  std::unique_ptr<MemoryGuard> guard_;  // Null if there is none, or if it failed.
  std::string hook_, reason_;
  bool is_expected_ = true;
  std::map<uint64_t, Enforcement> slices_;
};

}  // namespace carve::node
