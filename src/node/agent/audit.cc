// The audit, carried out: what the driver shows of processes that never attached is told, and answered as
// configured (node/tenant/audit.h). Costs nothing while everybody attached: a look-up per process and second.
#include <algorithm>
#include <csignal>
#include <utility>

#include "node/agent/agent.h"

namespace carve::node {

// A process attaches before it can hold memory, so one that holds some and is no member went another way.
void Agent::audit(Tenant& tenant, const NodeDevice& d, const ProcessUse& use) {
  const auto pid = static_cast<pid_t>(use.pid);
  const auto member = tenant.members.lower_bound(ProcessId{pid, 0});
  if (member != tenant.members.end() && member->first.pid == pid) return;
  const auto stat = stat_of(pid);
  if (!stat || stat->state == 'Z') return;  // It died between the driver's answer and now.

  const auto [found, is_new] = tenant.unregistered.try_emplace(stat->id);
  Unregistered& it = found->second;
  it.seen = samples_;
  if (!is_new) return;
  const std::string why = tenant.limited() ? why_unregistered(looks_of(pid)) : "the slice has no isolation";
  it.sentence = fmt::format("process {} ({}) holds {} of device {} without having registered: {}", pid,
                            command_of(pid), text(use.used).c_str(), d.device.index, why);
  event(tenant.name(), it.sentence);
  switch (answer_to({tenant.limited(), use.only_draws, is_mps_server(pid)}, settings_.audit)) {
    case AuditAct::report: break;
    case AuditAct::freeze: freeze(tenant, stat->id); break;
    case AuditAct::kill:
      if (const Fd pidfd = open_process(stat->id)) send_signal(pidfd, SIGKILL);
      event(tenant.name(), fmt::format("process {} was killed for it (--audit kill)", pid));
      break;
  }
}

// Whoever launches past its gate is seen by the driver, which it cannot write to.
void Agent::audit_work(const NodeDevice& d) {
  const auto compute = this->compute(d.device.uuid);
  if (!compute || !d.sample.trouble.empty()) return;
  for (const SliceCompute& had : compute->slices) {
    const auto living = tenants_.find(had.tenant);
    if (living == tenants_.end()) continue;
    Tenant& tenant = *living->second;
    const auto& parts = tenant.use.what.parts;
    const auto part = std::ranges::find(parts, d.device.uuid, &SlicePart::device);
    if (part == parts.end() || tenant.stopping || tenant.frozen) continue;
    Measured& m = tenant.measured[static_cast<size_t>(part - parts.begin())];
    const uint64_t charged = had.busy_ns - std::exchange(m.charged_ns, had.busy_ns);
    const uint64_t elapsed = had.as_of_ns - std::exchange(m.as_of_ns, had.as_of_ns);
    if (elapsed == 0 || elapsed == had.as_of_ns) continue;
    const double charged_percent = 100.0 * static_cast<double>(charged) / static_cast<double>(elapsed);
    if (!m.bypass.certain(m.sm_percent, charged_percent)) continue;
    // The one that works most stands for them all.
    const ProcessUse* worst = nullptr;
    for (const ProcessUse& use : d.sample.processes)
      if (tenant_of(static_cast<pid_t>(use.pid)) == &tenant &&
          (worst == nullptr || use.sm_percent > worst->sm_percent))
        worst = &use;
    if (worst == nullptr) continue;
    const auto pid = static_cast<pid_t>(worst->pid);
    event(tenant.name(), fmt::format("works beyond its leases: by the driver's count its kernels had {} % of "
                                     "device {}, by the arbiter's {:.0f} %; "
                                     "process {} ({}) passes its gate",
                                     m.sm_percent, d.device.index, charged_percent, pid, command_of(pid)));
    const auto stat = stat_of(pid);
    if (!stat) continue;
    switch (settings_.audit) {
      case AuditAct::report: break;
      case AuditAct::freeze: freeze(tenant, stat->id); break;
      case AuditAct::kill: stop(tenant, "it worked beyond its leases (--audit kill)"); break;
    }
    if (settings_.audit == AuditAct::kill) return;  // Tenants may be gone.
  }
}

// The whole slice, in one step that nobody inside can undo; where there is no cgroup, the process.
void Agent::freeze(Tenant& tenant, const ProcessId& process) {
  if (tenant.cgroup && tenant.cgroup->freeze(true)) {
    event(tenant.name(),
          fmt::format("frozen for it (--audit freeze); carve thaw {} lets it go on", tenant.name()));
  } else if (const Fd pidfd = open_process(process)) {
    send_signal(pidfd, SIGSTOP);
    tenant.unregistered[process].stopped = true;
    event(tenant.name(),
          fmt::format("process {} was stopped for it (--audit freeze; the slice has no cgroup of "
                      "the agent's making); carve thaw {} lets it go on",
                      process.pid, tenant.name()));
  }
  tenant.frozen = true;
}

Outcome<void> Agent::thaw(Tenant& tenant) {
  if (!tenant.frozen) return failure(FailureKind::conflict, "slice {} is not frozen", tenant.name());
  if (tenant.cgroup) tenant.cgroup->freeze(false);
  for (auto& [process, it] : tenant.unregistered) {
    if (!std::exchange(it.stopped, false)) continue;
    if (const Fd pidfd = open_process(process)) send_signal(pidfd, SIGCONT);
  }
  tenant.frozen = false;
  event(tenant.name(), "thawed");
  return {};
}

}  // namespace carve::node
