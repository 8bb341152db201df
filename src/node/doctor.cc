#include "node/doctor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "os/clock.h"

namespace carve::node {
namespace {

api::Check check(std::string name, bool good, std::string detail, std::string fix = "",
                 CheckStatus otherwise = CheckStatus::degraded) {
  return {std::move(name), good ? CheckStatus::ok : otherwise, std::move(detail), good ? "" : std::move(fix)};
}

bool exists(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

void check_devices(const NodeView& node, const std::vector<DeviceView>& devices,
                   std::vector<api::Check>& checks) {
  checks.push_back(
      check("devices", !devices.empty(),
            fmt::format("{} {}device{} found through NVML", devices.size(),
                        node.simulated.empty() ? "" : "simulated ", devices.size() == 1 ? "" : "s"),
            "install a GPU and its driver, or simulate one: carved --sim a10x2", CheckStatus::failed));
  for (const DeviceView& d : devices) {
    const std::string name = fmt::format("device {}", d.device.index);
    if (d.health.state != HealthState::ok)
      checks.push_back(
          check(name, false, d.health.reason, "read the kernel's log: dmesg | grep -i xid",
                d.health.state == HealthState::xid ? CheckStatus::degraded : CheckStatus::failed));
    if (d.mode != DeviceMode::whole) {
      const std::string message = mode_message(d.mode);
      const size_t way_out = message.find("; ");
      checks.push_back(check(name + " mode", false, message.substr(0, way_out), message.substr(way_out + 2)));
    }
    if (d.context.count == 0)
      checks.push_back(check(
          name + " context", false,
          d.context_trouble.empty() ? "the context's size was not measured" : d.context_trouble,
          "see the agent's log; until the size is known, contexts are charged only after NVML reports them"));
    for (const std::string& unmanaged : d.unmanaged_processes)
      checks.push_back(check(
          name + " audit", false, unmanaged,
          "start the program with carve run, or stop it; the agent does not act on unmanaged processes"));
  }
}

void check_driver(const NodeView& node, const std::vector<DeviceView>& devices,
                  std::vector<api::Check>& checks) {
  const bool fresh = node.sample_age_ns < 5 * os::second;
  checks.push_back(check("driver samples", fresh,
                         fresh ? "NVML is sampled every second" : "NVML has not responded for 5 s",
                         "run nvidia-smi; if it hangs too, the driver is the cause", CheckStatus::failed));
  if (!node.process_lists_trouble.empty())
    checks.push_back(check(
        "nvidia-smi in slices", false, node.process_lists_trouble,
        "the memory and the devices that it shows are right; for the slice's processes, use carve show"));
  const bool hidden = std::ranges::any_of(devices, &DeviceView::processes_hidden);
  checks.push_back(check("audit", !hidden,
                         hidden
                             ? "NVML does not show the memory of each process, so the audit and the charge "
                               "for growth are off"
                             : fmt::format("NVML shows every process; action on unattached processes: {}; "
                                           "action on growth beyond the quota: {}",
                                           text(node.audit), text(node.over_quota)),
                         "run the agent in the machine's own pid namespace"));
}

void check_ended(const std::vector<DeviceView>& devices, std::vector<api::Check>& checks) {
  std::string trouble;
  for (const DeviceView& d : devices)
    if (d.is_reported && !d.ended_trouble.empty())
      trouble += fmt::format("{}device {}: {}", trouble.empty() ? "" : "; ", d.device.index, d.ended_trouble);
  checks.push_back(
      check("audit of ended processes", trouble.empty(),
            trouble.empty() ? "NVML's accounting reports processes that ended before the next sample"
                            : "processes that end before the next sample are not audited: " + trouble,
            "run the agent as root, or turn accounting on: nvidia-smi -am 1; not every device supports it"));
}

void check_kernel_log(const NodeView& node, std::vector<api::Check>& checks) {
  checks.push_back(
      check("kernel log", node.kernel_log_trouble.empty(),
            node.kernel_log_trouble.empty()
                ? node.kernel_log + " identifies the process that caused an error (Xid), and thus its slice"
                : node.kernel_log_trouble + "; errors (Xid) are shown only for their device, not for a slice",
            "run the agent with CAP_SYSLOG, or set a readable copy with --kernel-log FILE"));
}

// Checks the agent's files and rights on this machine.
void check_machine(const NodeView& node, std::vector<api::Check>& checks) {
  checks.push_back(check("preload library", exists(node.preload), node.preload,
                         "build or install it: cmake --build build --target carve_preload",
                         CheckStatus::failed));
  checks.push_back(check("shims for containers", exists(node.shims + "/libcuda.so.1"), node.shims,
                         "build or install them"));
  checks.push_back(check(
      "sealed limits", node.limits_sealed,
      node.limits_sealed
          ? "slices get their limits through a read-only mount; root in a container cannot write them either"
          : "limits are protected only against accidents, because a process of the agent's user could open "
            "them for writing",
      geteuid() == 0 ? "use Linux 5.12 or newer, and give the agent CAP_SYS_ADMIN in its mount namespace"
                     : "run the agent as root"));
  checks.push_back(check(
      "cgroup per slice", node.cgroup_trouble.empty(),
      node.cgroup_trouble.empty()
          ? "each slice has a cgroup, so its end is detected immediately and a stop reaches every process"
          : "slices are identified only by their process trees: " + node.cgroup_trouble,
      "run the agent as root on a machine with cgroup v2 mounted"));
  checks.push_back(
      check("shared memory", node.runtime_in_memory,
            node.runtime_dir + (node.runtime_in_memory
                                    ? " is on a tmpfs"
                                    : " is on a disk, so its pages are written back from time to time"),
            "put the socket on a tmpfs, such as /run or $XDG_RUNTIME_DIR"));
  const bool cdi = access(node.cdi_dir.c_str(), W_OK) == 0 ||
                   access(node.cdi_dir.substr(0, node.cdi_dir.rfind('/')).c_str(), W_OK) == 0;
  checks.push_back(check("containers (CDI)", cdi,
                         node.cdi_dir + (cdi ? " can be written" : " cannot be written"),
                         "run the agent as root, or set a directory with --cdi-dir"));
}

// Reports what enforces memory limits, and why it is not the kernel guard.
api::Check check_guard(const GuardStatus& guard) {
  if (guard.memory.level == EnforcementLevel::kernel)
    return check("kernel guard", true,
                 fmt::format("in force, attached {}; it protects {} slice{}", guard.hook, guard.slices,
                             guard.slices == 1 ? "" : "s"));
  return check(
      "kernel guard", guard.is_expected,
      fmt::format("the guest library enforces memory limits, and a hostile program can bypass it: {}",
                  guard.memory.reason),
      "run the agent as root, with NVIDIA's open kernel modules, on Linux 5.17 or newer with BTF "
      "(docs/guard.md); carved --guard library accepts the guest library");
}

// Reports whether this agent or a Kubernetes cluster grants slices.
api::Check check_bookkeeper(const NodeView& node) {
  return check("bookkeeper", true,
               node.bookkeeper == Bookkeeper::agent
                   ? "the agent grants the slices that users request"
                   : "Kubernetes manages slices: only root may create them, for pods and claims");
}

// Reports who may operate. A missing group is not a fault.
api::Check check_operators(const Operators& operators) {
  if (operators.group.empty())
    return check("operators", true, "root and the agent's user (carved --operators-group none)");
  if (!operators.gid)
    return check(
        "operators", true,
        fmt::format("root and the agent's user; there is no group {0}, whose members could operate this "
                    "node too (groupadd {0}; usermod -aG {0},carve USER)",
                    operators.group));
  return check("operators", true,
               fmt::format("root, the agent's user and the members of the group {} (gid {})", operators.group,
                           *operators.gid));
}

// Reports how compute is metered.
api::Check check_metering(const NodeView& node) {
  std::string detail =
      "counts the time in which a slice had work on the device: the device writes the end of the work "
      "(cuStreamWriteValue64), or the program's own synchronisation reports it; the result is compared four "
      "times a second with what NVML reports for each process";
  if (node.polled_processes != 0)
    detail +=
        fmt::format("; for {} process{} the device cannot write the end, so CUDA events are polled instead",
                    node.polled_processes, node.polled_processes == 1 ? "" : "es");
  return check("compute metering", true, detail);
}

}  // namespace

api::Diagnosis diagnose(const Agent& agent, const Operators& operators) {
  const NodeView node = agent.node();
  const std::vector<DeviceView> devices = agent.devices();
  api::Diagnosis out;
  out.memory = node.guard.memory.level;
  out.compute = enforced_by_guest;
  check_devices(node, devices, out.checks);
  check_driver(node, devices, out.checks);
  check_ended(devices, out.checks);
  check_kernel_log(node, out.checks);
  check_machine(node, out.checks);
  out.checks.push_back(check_guard(node.guard));
  out.checks.push_back(check_metering(node));
  out.checks.push_back(check_bookkeeper(node));
  out.checks.push_back(check_operators(operators));
  return out;
}

}  // namespace carve::node
