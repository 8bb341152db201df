#include "node/guard_start.h"

#include <unistd.h>

#include "node/guard/kernel_guard.h"
#include "node/guard/self_test.h"
#include "node/identity/cgroup.h"
#include "os/log.h"
#include "os/process.h"

namespace carve::node {
namespace {

constexpr const char* control_node = "/dev/nvidiactl";

// Where the guard is pinned, and the cgroup of its self-test.
struct Places {
  std::string pins;
  Cgroup probe;
};

Outcome<Places> find_places(const Options& options) {
  const auto tree = find_cgroup_tree(os::read_file("/proc/self/mountinfo").value_or(""));
  if (!tree) return failure(FailureKind::unavailable, "no cgroup v2 tree is mounted");
  const std::string group = cgroup_group(options.socket);
  auto probe = Cgroup::make(*tree, group, "guard-probe");
  if (!probe) return tl::unexpected(probe.error());
  return Places{fmt::format("/sys/fs/bpf/{}-guard-{}", group, GUARD_LAYOUT), std::move(*probe)};
}

// A fresh guard learns from a context on each device which page allocator serves it.
Outcome<void> test(KernelGuard& guard, const Places& places, const Machine& machine, bool is_fresh) {
  const std::string& probe = places.probe.path();
  if (const auto refused = test_refusal(guard, probe, control_node); !refused) return refused;
  if (!is_fresh) return {};
  for (const NodeDevice& d : machine.inventory.devices)
    if (const auto counted =
            test_count(guard, probe, d.minor,
                       {"/proc/self/exe", "--measure-context", machine.paths.libcuda, text(d.device.uuid)});
        !counted)
      return counted;
  return {};
}

Outcome<std::unique_ptr<SliceGuard>> open_tested(const Places& places, const Machine& machine) {
  Failure last;
  for (const GuardHook hook : {GuardHook::security_module, GuardHook::return_value}) {
    const bool is_fresh = !KernelGuard::is_pinned(places.pins);
    auto guard = KernelGuard::open(places.pins, hook);
    if (!guard) {
      last = guard.error();
      continue;
    }
    const std::string trouble = (*guard)->trouble();
    const auto tested = trouble.empty() ? test(**guard, places, machine, is_fresh)
                                        : Outcome<void>(failure(FailureKind::unavailable, "{}", trouble));
    if (tested) {
      const char* const attached =
          (*guard)->hook() == GuardHook::security_module
              ? "by the security module bpf"
              : "by a changed return value, because the security module bpf is not active";
      return std::make_unique<SliceGuard>(std::move(*guard), attached);
    }
    last = tested.error();
    guard->reset();
    KernelGuard::remove(places.pins);
  }
  return tl::unexpected(last);
}

// Returns why the options or the devices rule the guard out; empty if they do not.
std::string excluded(const Options& options) {
  if (options.guard == GuardChoice::library) return "carved --guard library, the default";
  if (!options.sim.empty()) return "simulated devices have no kernel driver";
  if (!options.contexts_in_slice)
    return "contexts are not charged to slices (carved --context-charge reserve)";
  return "";
}

}  // namespace

Outcome<std::unique_ptr<SliceGuard>> start_guard(const Options& options, const Machine& machine) {
  const auto without = [&](const std::string& reason,
                           bool is_expected) -> Outcome<std::unique_ptr<SliceGuard>> {
    if (options.guard == GuardChoice::kernel)
      return failure(FailureKind::failed_precondition,
                     "--guard kernel: {}; use --guard auto to let the guest library enforce the limits",
                     reason);
    return std::make_unique<SliceGuard>(reason, is_expected);
  };
  if (geteuid() != 0 && excluded(options).empty()) return without("the agent does not run as root", false);
  auto places = find_places(options);
  if (const std::string reason = excluded(options); !reason.empty()) {
    if (places) {
      KernelGuard::remove(places->pins);  // An agent with other options may have left one.
      places->probe.remove();
    }
    return without(reason, true);
  }
  if (!places) return without(places.error().message, false);
  auto guard = open_tested(*places, machine);
  places->probe.remove();
  if (guard) return guard;
  os::log::warning("memory limits are enforced only by the guest library: {}", guard.error().message);
  return without(guard.error().message, false);
}

}  // namespace carve::node
