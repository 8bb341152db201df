// The audit, carried out: what the driver shows of processes that never attached is told, and answered as
// configured (node/tenant/audit.h). Costs nothing while everybody attached: a look-up per process and second.
#include <csignal>

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
