#include "node/slice/processes.h"

#include <algorithm>
#include <csignal>

#include "os/clock.h"

namespace carve::node {

bool has_processes(LiveSlice& slice) {
  if (slice.cgroup && slice.cgroup->populated()) return true;
  if (!slice.attached.empty() || !slice.containers.empty()) return true;
  if (slice.cgroup || !slice.has_programs()) return false;
  if (slice.root.pidfd && os::alive(slice.root.pidfd)) return true;
  scan_descendants(slice);
  return !slice.descendants.empty();
}

void scan_descendants(LiveSlice& slice) {
  std::erase_if(slice.descendants, [](const auto& known) { return !os::alive(known.second); });
  const std::vector<os::ProcessStat> all = os::all_processes();
  std::map<pid_t, const os::ProcessStat*> by_pid;
  for (const os::ProcessStat& p : all) by_pid[p.id.pid] = &p;
  // Known descendants also count as ancestors, because their own parents may have ended.
  SliceIdentity wider = slice.identity;
  for (const auto& [id, pidfd] : slice.descendants) wider.attached.insert(id);
  World world;
  world.stat = [&](pid_t pid) -> std::optional<os::ProcessStat> {
    const auto found = by_pid.find(pid);
    return found == by_pid.end() ? std::nullopt : std::optional(*found->second);
  };
  world.cgroups = [](pid_t) { return Cgroups{}; };
  world.pid_namespace = [](pid_t) { return uint64_t{0}; };
  for (const os::ProcessStat& p : all) {
    if (p.state == 'Z' || p.id == slice.root.id || slice.descendants.contains(p.id)) continue;
    if (!slice_of(p.id.pid, {&wider}, world)) continue;
    if (os::Fd pidfd = os::open_process(p.id)) slice.descendants.emplace(p.id, std::move(pidfd));
  }
}

void kill_programs(LiveSlice& slice) {
  if (slice.cgroup) return slice.cgroup->kill();
  if (!slice.has_programs()) return;
  scan_descendants(slice);
  if (slice.root.pidfd) os::send_signal(slice.root.pidfd, SIGKILL);
  for (const auto& [id, pidfd] : slice.descendants) os::send_signal(pidfd, SIGKILL);
}

void kill_all(LiveSlice& slice) {
  kill_programs(slice);
  for (const Watched& container : slice.containers) os::send_signal(container.pidfd, SIGKILL);
  for (const auto& [id, attached] : slice.attached) os::send_signal(attached.pidfd, SIGKILL);
}

void terminate(LiveSlice& slice) {
  if (!slice.cgroup) scan_descendants(slice);
  std::map<pid_t, os::Fd> opened;
  for (const pid_t pid : pids_of(slice))
    if (const auto stat = os::stat_of(pid)) opened.emplace(pid, os::open_process(stat->id));
  // A process that has a pidfd and is still listed is the slice's, because its pid is not reused until it has
  // ended.
  const std::set<pid_t> listed = pids_of(slice);
  for (const auto& [pid, pidfd] : opened)
    if (pidfd && listed.contains(pid)) os::send_signal(pidfd, SIGTERM);
}

bool freeze(LiveSlice& slice, const os::ProcessId& process) {
  slice.frozen = true;
  if (slice.cgroup && slice.cgroup->freeze(true)) return true;
  if (const os::Fd pidfd = os::open_process(process)) {
    os::send_signal(pidfd, SIGSTOP);
    slice.stopped.insert(process);
  }
  return false;
}

void thaw(LiveSlice& slice) {
  if (slice.cgroup) slice.cgroup->freeze(false);
  for (const os::ProcessId& process : slice.stopped)
    if (const os::Fd pidfd = os::open_process(process)) os::send_signal(pidfd, SIGCONT);
  slice.stopped.clear();
  slice.frozen = false;
}

SliceState state_of(const LiveSlice& slice) {
  if (slice.stopping) return SliceState::stopping;
  if (slice.frozen) return SliceState::frozen;
  const bool program_runs = slice.root.pidfd && os::alive(slice.root.pidfd);
  if (slice.outlives_processes())
    return slice.containers.empty() && slice.attached.empty() && !program_runs ? SliceState::granted
                                                                               : SliceState::running;
  if (!slice.entered) return SliceState::granted;
  return program_runs ? SliceState::running : SliceState::lingering;
}

std::set<pid_t> pids_of(const LiveSlice& slice) {
  std::set<pid_t> pids;
  for (const auto& [id, process] : slice.attached) pids.insert(id.pid);
  if (slice.cgroup)
    for (const int pid : slice.cgroup->pids()) pids.insert(pid);
  for (const auto& [id, pidfd] : slice.descendants)
    if (os::alive(pidfd)) pids.insert(id.pid);
  if (slice.root.pidfd && os::alive(slice.root.pidfd)) pids.insert(slice.root.id.pid);
  for (const Watched& container : slice.containers) pids.insert(container.id.pid);
  return pids;
}

namespace {

// Returns when the quota last refused memory, in UTC, or 0 if never. The slice can write any time to the
// page. The clocks are read one after the other, so the result is truncated to milliseconds.
int64_t refused_utc_ns(const LiveSlice& slice) {
  if (!slice.report.page) return 0;
  const uint64_t at = slice.report.page->quota_refused_ns.load(std::memory_order_relaxed);
  const int64_t now = os::monotonic_ns();
  if (at == 0 || at > static_cast<uint64_t>(now)) return 0;
  return (os::utc_ns() - (now - static_cast<int64_t>(at))) / os::millisecond * os::millisecond;
}

}  // namespace

namespace {

std::vector<ProcessView> processes_of(const LiveSlice& slice, const Inspector& inspector) {
  std::set<pid_t> attached;
  for (const auto& [id, process] : slice.attached) attached.insert(id.pid);
  std::vector<ProcessView> out;
  for (const pid_t pid : pids_of(slice)) {
    const auto stat = os::stat_of(pid);
    const auto used = slice.used_by_pid.find(pid);
    out.push_back({.pid = pid,
                   .inner_pid = os::inner_pid_of(pid),
                   .command = stat ? inspector.command_of(stat->id) : "",
                   .attached = attached.contains(pid),
                   .used = used == slice.used_by_pid.end() ? Bytes{} : used->second});
  }
  return out;
}

}  // namespace

SliceView view_of(const LiveSlice& slice, const Inspector* inspector) {
  SliceView out{.record = slice.record,
                .state = state_of(slice),
                .memory = {enforced_by_guest, "", {}},
                .command = slice.command,
                .why = slice.why,
                .entered = slice.entered,
                .slot = slice.slot,
                .pods = slice.claim_pods,
                .unknown_pods = {slice.unknown_pods.begin(), slice.unknown_pods.end()},
                .xids = listed(slice.xids),
                .violations = slice.violations.list(),
                .refused_utc_ns = refused_utc_ns(slice),
                .idle_ns = std::max<int64_t>(0, os::monotonic_ns() - slice.active_ns),
                .parts = {},
                .processes = {}};
  for (unsigned d = 0; d < slice.granted().parts.size(); ++d) {
    const Bytes charged = slice.charged(d);
    out.parts.push_back(
        {.charged = charged,
         .spilled = slice.spilled(d),
         .used = slice.measured[d].used,
         .peak = std::max(slice.measured[d].peak, charged),
         .utilization_percent = std::min(slice.measured[d].sm_percent, 100u),
         .energy_microjoules =
             slice.control ? slice.control->devices[d].energy_microjoules.load(std::memory_order_relaxed)
                           : 0});
  }
  if (inspector != nullptr) out.processes = processes_of(slice, *inspector);
  return out;
}

}  // namespace carve::node
