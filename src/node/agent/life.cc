// The end of things: a process that mattered is gone, somebody wants a slice stopped, the last one has left.
//
// Where a slice has a cgroup, the kernel says when it is empty and kills it in one step. Where it has none,
// its processes are those whose ancestors lead into it: looked for when one of them ends, once a second while
// it runs (so that a branch is known before its parents are gone), and five times a second while it lingers.
#include <algorithm>
#include <csignal>

#include "node/agent/agent.h"
#include "node/os/clock.h"
#include "node/os/log.h"

namespace carve::node {
namespace {

constexpr int64_t kill_again = 100 * millisecond;

}  // namespace

void Agent::leave() {
  if (tree_) rmdir((tree_->mount + "/" + group_).c_str());  // Refused while a slice is in it.
}

void Agent::watch(Tenant& tenant, Watched& process, void (Agent::*ended)(Tenant&, const ProcessId&)) {
  process.pidfd = open_process(process.id);
  const auto call = [this, id = tenant.use.id, process_id = process.id, ended] {
    if (const auto living = tenants_.find(id); living != tenants_.end())
      (this->*ended)(*living->second, process_id);
  };
  if (!process.pidfd) {
    loop_.after(0, call);  // It has ended already; not from within the caller, who still holds the tenant.
    return;
  }
  loop_.watch(process.pidfd.get(), EPOLLIN, [this, fd = process.pidfd.get(), call](uint32_t) {
    loop_.forget(fd);
    call();
  });
}

void Agent::watch_cgroup(Tenant& tenant) {
  tenant.cgroup->populated();  // Acknowledges what was before.
  loop_.watch(tenant.cgroup->events_fd(), EPOLLPRI,
              [this, id = tenant.use.id](uint32_t) { end_if_over(id); });
}

void Agent::creator_ended(Tenant& tenant, const ProcessId&) {
  if (!tenant.entered) end(tenant.use.id, "who asked for it ended before anything ran in it");
}

void Agent::root_ended(Tenant& tenant, const ProcessId&) {
  if (tenant.cgroup ? tenant.cgroup->populated() : inhabited(tenant))
    event(tenant.name(), "its program ended; processes that it left behind run on");
  end_if_over(tenant.use.id);
}

void Agent::supervisor_ended(Tenant& tenant, const ProcessId&) {
  if (!tenant.entered) return end(tenant.use.id, "who asked for it ended before anything ran in it");
  if (tenant.cgroup) return;
  if (inhabited(tenant)) stop(tenant, "its supervisor ended");
  end_if_over(tenant.use.id);
}

void Agent::container_ended(Tenant& tenant, const ProcessId& init) {
  for (size_t i = 0; i < tenant.containers.size(); ++i) {
    if (tenant.containers[i].id != init) continue;
    tenant.containers.erase(tenant.containers.begin() + static_cast<ptrdiff_t>(i));
    tenant.identity.containers.erase(tenant.identity.containers.begin() + static_cast<ptrdiff_t>(i));
    event(tenant.name(), fmt::format("the container of process {} ended", init.pid));
    break;
  }
  note(tenant);
  end_if_over(tenant.use.id);
}

// Whether anything lives in it.
bool Agent::inhabited(Tenant& tenant) {
  if (tenant.cgroup && tenant.cgroup->populated()) return true;
  if (!tenant.members.empty() || !tenant.containers.empty()) return true;
  if (tenant.cgroup || tenant.persistent()) return false;
  if (tenant.root.pidfd && alive(tenant.root.pidfd)) return true;
  look_for_descendants(tenant);
  return !tenant.descendants.empty();
}

// Where there is no cgroup: everybody whose ancestors lead into the tenant, now.
void Agent::look_for_descendants(Tenant& tenant) {
  std::erase_if(tenant.descendants, [](const auto& known) { return !alive(known.second); });
  const std::vector<ProcessStat> all = all_processes();
  std::map<pid_t, const ProcessStat*> by_pid;
  for (const ProcessStat& p : all) by_pid[p.id.pid] = &p;
  TenantIdentity wider =
      tenant.identity;  // Those known before are ancestors too: their own parent may be gone.
  for (const auto& [id, pidfd] : tenant.descendants) wider.members.insert(id);
  World world;
  world.stat = [&](pid_t pid) -> std::optional<ProcessStat> {
    const auto found = by_pid.find(pid);
    return found == by_pid.end() ? std::nullopt : std::optional(*found->second);
  };
  world.cgroups = [](pid_t) { return Cgroups{}; };
  world.pid_namespace = [](pid_t) { return uint64_t{0}; };
  for (const ProcessStat& p : all) {
    if (p.state == 'Z' || p.id == tenant.root.id || tenant.descendants.contains(p.id)) continue;
    if (!node::tenant_of(p.id.pid, {&wider}, world)) continue;
    if (Fd pidfd = open_process(p.id)) tenant.descendants.emplace(p.id, std::move(pidfd));
  }
}

// Ends everybody in it, at once: with a cgroup the kernel does it in one step that nobody can outrun.
void Agent::kill_all(Tenant& tenant) {
  if (tenant.cgroup) tenant.cgroup->kill();
  if (!tenant.cgroup && !tenant.persistent()) {
    look_for_descendants(tenant);
    if (tenant.root.pidfd) send_signal(tenant.root.pidfd, SIGKILL);
    for (const auto& [id, pidfd] : tenant.descendants) send_signal(pidfd, SIGKILL);
  }
  for (const Watched& container : tenant.containers) send_signal(container.pidfd, SIGKILL);
  for (const auto& [id, member] : tenant.members) send_signal(member.pidfd, SIGKILL);
}

void Agent::stop(Tenant& tenant, const std::string& why) {
  const uint64_t id = tenant.use.id;
  if (!tenant.stopping) {
    tenant.stopping = true;
    tenant.why = why;
    if (tenant.persistent()) remove_cdi(settings_.cdi_dir, tenant.name());
  }
  kill_all(tenant);
  end_if_over(id);
  // A tree may have grown a branch between the look and the blow.
  if (tenants_.contains(id))
    loop_.after(kill_again, [this, id] {
      if (const auto living = tenants_.find(id); living != tenants_.end())
        stop(*living->second, living->second->why);
    });
}

void Agent::end_if_over(uint64_t id) {
  const auto living = tenants_.find(id);
  if (living == tenants_.end()) return;
  Tenant& tenant = *living->second;
  if (tenant.persistent() && !tenant.stopping) return;
  if (!tenant.entered && !tenant.stopping) return;
  if (inhabited(tenant)) return;
  end(id, tenant.stopping ? tenant.why : "its last process ended");
}

void Agent::end(uint64_t id, const std::string& why) {
  const auto living = tenants_.find(id);
  if (living == tenants_.end()) return;
  Tenant& tenant = *living->second;
  tenant.stopping = true;
  tenant.why = why;
  if (ledger_.living().contains(id)) {
    const auto change = ledger_.end(id, now(), why);
    if (const auto kept = ledger::post(ledger_, *store_, *change); !kept) {
      log::error("{}: cannot be ended yet: {}", tenant.name(), kept.error().sentence);
      loop_.after(second, [this, id] { end_if_over(id); });
      return;
    }
  }
  if (tenant.persistent()) remove_cdi(settings_.cdi_dir, tenant.name());
  for (const Watched* w : {&tenant.creator, &tenant.root, &tenant.supervisor}) loop_.forget(w->pidfd.get());
  for (const Watched& w : tenant.containers) loop_.forget(w.pidfd.get());
  for (const auto& [process, member] : tenant.members) loop_.forget(member.pidfd.get());
  if (tenant.cgroup) {
    loop_.forget(tenant.cgroup->events_fd());
    tenant.cgroup->remove();
  }
  tenant.ended = true;
  compute_ended(tenant);
  keeper_.drop(tenant.name());
  runtime_.remove(tenant.name());
  event(tenant.name(), "ended: " + why);
  tenants_.erase(living);
  if (policies_.settle(policy_holders()))
    event("", fmt::format("compute policy {} is in effect where the last slice has left",
                          text(policies_.desired())));
}

}  // namespace carve::node
