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

void check_devices(const Agent& agent, std::vector<api::Check>& checks) {
  const bool simulated = !agent.settings().paths.sim_set.empty();
  checks.push_back(check("devices", !agent.devices().empty(),
                         fmt::format("{} {}device{} found through NVML", agent.devices().size(),
                                     simulated ? "simulated " : "", agent.devices().size() == 1 ? "" : "s"),
                         "install a GPU and its driver, or simulate one: carved --sim a10x2",
                         CheckStatus::failed));
  for (const NodeDevice& d : agent.devices()) {
    const std::string name = fmt::format("device {}", d.device.index);
    if (d.health().state != HealthState::ok)
      checks.push_back(
          check(name, false, d.health().reason, "read the kernel's log: dmesg | grep -i xid",
                d.health().state == HealthState::xid ? CheckStatus::degraded : CheckStatus::failed));
    if (d.context.count == 0)
      checks.push_back(
          check(name + " context", false,
                d.context_trouble.empty() ? "the context's size was not measured" : d.context_trouble,
                "see the agent's log; until then contexts are charged after NVML reports them"));
    for (const std::string& unmanaged : d.unmanaged_processes)
      checks.push_back(
          check(name + " audit", false, unmanaged,
                "start it with carve run, or stop it; the agent does not act on unmanaged processes"));
  }
}

void check_driver(const Agent& agent, std::vector<api::Check>& checks) {
  const Settings& settings = agent.settings();
  const bool fresh = agent.sample_age_ns() < 5 * os::second;
  checks.push_back(check("driver samples", fresh,
                         fresh ? "NVML is sampled every second" : "NVML has not answered for 5 s",
                         "run nvidia-smi; if it hangs too, the driver is the cause", CheckStatus::failed));
  const bool hidden =
      std::ranges::any_of(agent.devices(), [](const NodeDevice& d) { return d.sample.processes_hidden; });
  checks.push_back(check("audit", !hidden,
                         hidden
                             ? "NVML does not show the memory of each process, so the audit and the charge "
                               "for growth are off"
                             : fmt::format("NVML shows every process; action against unattached processes: "
                                           "{}; action on growth beyond the quota: {}",
                                           text(settings.audit), text(settings.over_quota)),
                         "run the agent in the machine's own pid namespace"));
}

// The agent's files and rights on this machine.
void check_machine(const Agent& agent, std::vector<api::Check>& checks) {
  const Settings& settings = agent.settings();
  checks.push_back(check("preload library", exists(settings.paths.preload), settings.paths.preload,
                         "build or install it: cmake --build build --target carve_preload",
                         CheckStatus::failed));
  checks.push_back(check("shims for containers", exists(settings.paths.shims + "/libcuda.so.1"),
                         settings.paths.shims, "build or install them"));
  checks.push_back(check(
      "sealed limits", agent.runtime().sealed(),
      agent.runtime().sealed()
          ? "slices get their limits through a read-only mount; root in a container cannot write them either"
          : "limits are protected against accidents only; a process of the agent's own user could "
            "open them for writing",
      geteuid() == 0 ? "Linux 5.12 or newer, and CAP_SYS_ADMIN in the agent's mount namespace"
                     : "run the agent as root"));
  checks.push_back(
      check("cgroup per slice", agent.has_cgroups(),
            agent.has_cgroups()
                ? "each slice has a cgroup, so its end is seen at once and a stop reaches every process"
                : "slices are identified by their process tree:  " + agent.cgroup_trouble(),
            "run the agent as root on a machine with cgroup v2 mounted"));
  checks.push_back(
      check("shared memory", agent.runtime().in_memory(),
            agent.runtime().path() + (agent.runtime().in_memory()
                                          ? " is on a tmpfs"
                                          : " is on a disk, so its pages are written back from time to time"),
            "put the socket on a tmpfs, such as /run or $XDG_RUNTIME_DIR"));
  const bool cdi = access(settings.cdi_dir.c_str(), W_OK) == 0 ||
                   access(settings.cdi_dir.substr(0, settings.cdi_dir.rfind('/')).c_str(), W_OK) == 0;
  checks.push_back(check("containers (CDI)", cdi,
                         settings.cdi_dir + (cdi ? " can be written" : " cannot be written"),
                         "run the agent as root, or name a directory with --cdi-dir"));
}

}  // namespace

api::Diagnosis diagnose(const Agent& agent) {
  const std::string metering = agent.metering();
  api::Diagnosis out;
  out.memory = enforced_by_guest;
  if (!metering.empty()) out.compute = enforced_by_guest;
  check_devices(agent, out.checks);
  check_driver(agent, out.checks);
  check_machine(agent, out.checks);
  out.checks.push_back(
      check("compute metering", !metering.empty(),
            metering.empty() ? "compute is not metered; shares are recorded and not enforced" : metering));
  return out;
}

}  // namespace carve::node
