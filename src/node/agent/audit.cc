// Carries out the audit: reports processes that hold device memory without being attached, and acts as
// configured (node/slice/audit.h). If every process is attached, the cost is one look-up per process and
// second.
#include <algorithm>
#include <csignal>
#include <utility>

#include "node/agent/agent.h"

namespace carve::node {

// A process attaches before it can hold device memory. A process that holds some and is not attached bypassed
// the guest library.
void Agent::audit(LiveSlice& slice, const NodeDevice& d, const ProcessUse& use) {
  const auto pid = static_cast<pid_t>(use.pid);
  const auto attached = slice.attached.lower_bound(os::ProcessId{pid, 0});
  if (attached != slice.attached.end() && attached->first.pid == pid) return;
  const auto stat = os::stat_of(pid);
  if (!stat || stat->state == 'Z') return;  // The process ended after the driver's answer.

  const auto [found, is_new] = slice.unattached.try_emplace(stat->id);
  UnattachedProcess& it = found->second;
  it.seen = samples_;
  if (!is_new) return;
  const std::string why = slice.limited() ? why_unattached(looks_of(pid)) : "the slice has no isolation";
  it.sentence = fmt::format("process {} ({}) found unattached with {} on device {}: {}", pid,
                            os::command_of(pid), text(use.used).c_str(), d.device.index, why);
  event(slice.name(), it.sentence);
  switch (answer_to({slice.limited(), use.graphics_only, is_mps_server(pid)}, settings_.audit)) {
    case AuditAction::report: break;
    case AuditAction::freeze: freeze(slice, stat->id); break;
    case AuditAction::kill:
      if (const os::Fd pidfd = os::open_process(stat->id)) os::send_signal(pidfd, SIGKILL);
      event(slice.name(), fmt::format("process {} killed (--audit kill)", pid));
      break;
  }
}

// Finds slices that launch beyond their leases. The driver's count shows them, and a slice cannot change it.
void Agent::audit_work(const NodeDevice& d) {
  const auto compute = this->compute(d.device.uuid);
  if (!compute || d.sample.health.state != HealthState::ok) return;
  for (const SliceCompute& had : compute->slices) {
    const auto living = slices_.find(had.slice);
    if (living == slices_.end()) continue;
    LiveSlice& slice = *living->second;
    const auto& parts = slice.record.slice.parts;
    const auto part = std::ranges::find(parts, d.device.uuid, &SlicePart::device);
    if (part == parts.end()) continue;
    PartUsage& m = slice.measured[static_cast<size_t>(part - parts.begin())];
    const uint64_t charged = had.figures.busy_ns - std::exchange(m.charged_ns, had.figures.busy_ns);
    const uint64_t elapsed = had.figures.as_of_ns - std::exchange(m.as_of_ns, had.figures.as_of_ns);
    slice.busy_ns += charged;
    if (slice.stopping || slice.frozen) continue;
    if (elapsed == 0 || elapsed == had.figures.as_of_ns) continue;
    const double charged_percent = 100.0 * static_cast<double>(charged) / static_cast<double>(elapsed);
    if (!m.bypass.certain(m.sm_percent, charged_percent)) continue;
    // The process with the highest utilization is reported for the whole slice.
    const ProcessUse* worst = nullptr;
    for (const ProcessUse& use : d.sample.processes)
      if (slice_of(static_cast<pid_t>(use.pid)) == &slice &&
          (worst == nullptr || use.sm_percent > worst->sm_percent))
        worst = &use;
    if (worst == nullptr) continue;
    const auto pid = static_cast<pid_t>(worst->pid);
    event(slice.name(), fmt::format("found running beyond its leases: by the driver's count its kernels used "
                                    "{} % of device {}, by the arbiter's {:.0f} %; "
                                    "process {} ({}) bypasses its launch gate",
                                    m.sm_percent, d.device.index, charged_percent, pid, os::command_of(pid)));
    const auto stat = os::stat_of(pid);
    if (!stat) continue;
    switch (settings_.audit) {
      case AuditAction::report: break;
      case AuditAction::freeze: freeze(slice, stat->id); break;
      case AuditAction::kill: stop(slice, "it ran beyond its leases (--audit kill)"); break;
    }
    if (settings_.audit == AuditAction::kill) return;  // stop() may have removed slices from the map.
  }
}

// Freezes the whole slice in one step, which no process inside can undo. Without a cgroup, stops the process.
void Agent::freeze(LiveSlice& slice, const os::ProcessId& process) {
  if (slice.cgroup && slice.cgroup->freeze(true)) {
    event(slice.name(), fmt::format("frozen (--audit freeze); carve thaw {} continues it", slice.name()));
  } else if (const os::Fd pidfd = os::open_process(process)) {
    os::send_signal(pidfd, SIGSTOP);
    slice.unattached[process].stopped = true;
    event(slice.name(),
          fmt::format("process {} stopped (--audit freeze; the slice has no cgroup of the agent); carve "
                      "thaw {} continues it",
                      process.pid, slice.name()));
  }
  slice.frozen = true;
}

Outcome<void> Agent::thaw(LiveSlice& slice) {
  if (!slice.frozen) return failure(FailureKind::failed_precondition, "slice {} is not frozen", slice.name());
  if (slice.cgroup) slice.cgroup->freeze(false);
  for (auto& [process, it] : slice.unattached) {
    if (!std::exchange(it.stopped, false)) continue;
    if (const os::Fd pidfd = os::open_process(process)) os::send_signal(pidfd, SIGCONT);
  }
  slice.frozen = false;
  event(slice.name(), "thawed");
  return {};
}

}  // namespace carve::node
