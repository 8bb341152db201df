// Loads the kernel guard's programs, attaches them and writes their maps. The guard limits the device memory
// of slices in the kernel, below CUDA, where a program cannot bypass it (docs/guard.md).
//
// Programs, attachments and maps are pinned in a directory of bpffs, so they stay in force when the agent
// ends, and the next agent adopts them. Only root can use this class. Used by the loop's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/failure.h"
#include "node/guard/memory_guard.h"

struct bpf_object;
struct ring_buffer;

namespace carve::node {

// How the check of an ioctl is attached.
enum class GuardHook : uint8_t {
  security_module,  // By the security module `bpf` (BPF LSM).
  return_value,     // By a program that changes the return value, where that module is not active.
};

class KernelGuard : public MemoryGuard {
 public:
  // Returns whether this build contains the guard's programs.
  static bool is_built_in();
  // Adopts the guard that is pinned in `directory`, or loads and attaches a new one with this hook. The failure
  // names the first prerequisite that is missing.
  // A new guard records at most `max_blocks` allocated blocks; tests choose few.
  static Outcome<std::unique_ptr<KernelGuard>> open(const std::string& directory, GuardHook hook,
                                                    uint32_t max_blocks = GUARD_MAX_BLOCKS);
  // Returns whether a guard is pinned in `directory`.
  static bool is_pinned(const std::string& directory);
  // Detaches the pinned guard and removes the directory.
  static void remove(const std::string& directory);

  ~KernelGuard() override;  // The pinned guard stays in force.
  KernelGuard(const KernelGuard&) = delete;
  KernelGuard& operator=(const KernelGuard&) = delete;

  Outcome<void> set_limits(uint64_t slice, const std::vector<GuardLimit>& parts,
                           bool is_probe = false) override;
  Outcome<void> add_cgroup(uint64_t slice, const std::string& path) override;
  void remove_cgroup(const std::string& path) override;
  void remove_slice(uint64_t slice) override;
  std::vector<uint64_t> slices() const override;
  std::optional<GuardUsage> usage(uint64_t slice) const override;
  std::vector<guard_finding> findings() override;
  int findings_fd() const override;
  // Compares the driver's module with the one that was loaded when the programs were attached, and reads how
  // often the kernel skipped one of them.
  std::string trouble() const override;
  GuardHook hook() const { return hook_; }

 private:
  KernelGuard() = default;
  uint64_t missed() const;
  Outcome<void> load(const std::string& directory, GuardHook hook, uint32_t max_blocks);
  Outcome<void> adopt(const std::string& directory);

  struct Descriptors;
  std::unique_ptr<Descriptors> fd_;
  bpf_object* object_ = nullptr;  // Null if the guard was adopted.
  ring_buffer* ring_ = nullptr;
  std::vector<guard_finding> found_;
  GuardHook hook_ = GuardHook::security_module;
};

}  // namespace carve::node
