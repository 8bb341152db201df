// KernelGuard in a build without the guard's programs.
#include "node/guard/kernel_guard.h"

namespace carve::node {

struct KernelGuard::Descriptors {};

bool KernelGuard::is_built_in() { return false; }
bool KernelGuard::is_pinned(const std::string&) { return false; }
void KernelGuard::remove(const std::string&) {}

Outcome<std::unique_ptr<KernelGuard>> KernelGuard::open(const std::string&, GuardHook, uint32_t) {
  return failure(FailureKind::unavailable,
                 "this build has no kernel guard, because clang-16 or libbpf-dev was not installed");
}

KernelGuard::~KernelGuard() = default;
Outcome<void> KernelGuard::set_limits(uint64_t, const std::vector<GuardLimit>&, bool) { return {}; }
Outcome<void> KernelGuard::add_cgroup(uint64_t, const std::string&) { return {}; }
void KernelGuard::remove_cgroup(const std::string&) {}
void KernelGuard::remove_slice(uint64_t) {}
std::vector<uint64_t> KernelGuard::slices() const { return {}; }
std::optional<GuardUsage> KernelGuard::usage(uint64_t) const { return std::nullopt; }
std::vector<guard_finding> KernelGuard::findings() { return {}; }
int KernelGuard::findings_fd() const { return -1; }
std::string KernelGuard::trouble() const { return ""; }

}  // namespace carve::node
