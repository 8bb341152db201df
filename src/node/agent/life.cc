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

void Agent::watch(LiveSlice& slice, Watched& process, void (Agent::*ended)(LiveSlice&, const ProcessId&)) {
  process.pidfd = open_process(process.id);
  const auto call = [this, id = slice.record.id, process_id = process.id, ended] {
    if (const auto living = slices_.find(id); living != slices_.end())
      (this->*ended)(*living->second, process_id);
  };
  if (!process.pidfd) {
    loop_.after(0, call);  // It has ended already; not from within the caller, who still holds the slice.
    return;
  }
  loop_.watch(process.pidfd.get(), EPOLLIN, [this, fd = process.pidfd.get(), call](uint32_t) {
    loop_.forget(fd);
    call();
  });
}

void Agent::watch_cgroup(LiveSlice& slice) {
  slice.cgroup->populated();  // Acknowledges what was before.
  loop_.watch(slice.cgroup->events_fd(), EPOLLPRI,
              [this, id = slice.record.id](uint32_t) { end_if_empty(id); });
}

void Agent::creator_ended(LiveSlice& slice, const ProcessId&) {
  if (!slice.entered) end(slice.record.id, "who asked for it ended before anything ran in it");
}

void Agent::root_ended(LiveSlice& slice, const ProcessId&) {
  if (slice.cgroup ? slice.cgroup->populated() : has_processes(slice))
    event(slice.name(), "its program ended; processes that it left behind run on");
  end_if_empty(slice.record.id);
}

void Agent::supervisor_ended(LiveSlice& slice, const ProcessId&) {
  if (!slice.entered) return end(slice.record.id, "who asked for it ended before anything ran in it");
  if (slice.cgroup) return;
  if (has_processes(slice)) stop(slice, "its supervisor ended");
  end_if_empty(slice.record.id);
}

void Agent::container_ended(LiveSlice& slice, const ProcessId& init) {
  for (size_t i = 0; i < slice.containers.size(); ++i) {
    if (slice.containers[i].id != init) continue;
    slice.containers.erase(slice.containers.begin() + static_cast<ptrdiff_t>(i));
    slice.identity.containers.erase(slice.identity.containers.begin() + static_cast<ptrdiff_t>(i));
    event(slice.name(), fmt::format("the container of process {} ended", init.pid));
    break;
  }
  write_state(slice);
  end_if_empty(slice.record.id);
}

// Whether anything lives in it.
bool Agent::has_processes(LiveSlice& slice) {
  if (slice.cgroup && slice.cgroup->populated()) return true;
  if (!slice.attached.empty() || !slice.containers.empty()) return true;
  if (slice.cgroup || slice.persistent()) return false;
  if (slice.root.pidfd && alive(slice.root.pidfd)) return true;
  scan_descendants(slice);
  return !slice.descendants.empty();
}

// Where there is no cgroup: everybody whose ancestors lead into the slice, now.
void Agent::scan_descendants(LiveSlice& slice) {
  std::erase_if(slice.descendants, [](const auto& known) { return !alive(known.second); });
  const std::vector<ProcessStat> all = all_processes();
  std::map<pid_t, const ProcessStat*> by_pid;
  for (const ProcessStat& p : all) by_pid[p.id.pid] = &p;
  SliceIdentity wider =
      slice.identity;  // Those known before are ancestors too: their own parent may be gone.
  for (const auto& [id, pidfd] : slice.descendants) wider.attached.insert(id);
  World world;
  world.stat = [&](pid_t pid) -> std::optional<ProcessStat> {
    const auto found = by_pid.find(pid);
    return found == by_pid.end() ? std::nullopt : std::optional(*found->second);
  };
  world.cgroups = [](pid_t) { return Cgroups{}; };
  world.pid_namespace = [](pid_t) { return uint64_t{0}; };
  for (const ProcessStat& p : all) {
    if (p.state == 'Z' || p.id == slice.root.id || slice.descendants.contains(p.id)) continue;
    if (!node::slice_of(p.id.pid, {&wider}, world)) continue;
    if (Fd pidfd = open_process(p.id)) slice.descendants.emplace(p.id, std::move(pidfd));
  }
}

// Ends everybody in it, at once: with a cgroup the kernel does it in one step that nobody can outrun.
void Agent::kill_all(LiveSlice& slice) {
  if (slice.cgroup) slice.cgroup->kill();
  if (!slice.cgroup && !slice.persistent()) {
    scan_descendants(slice);
    if (slice.root.pidfd) send_signal(slice.root.pidfd, SIGKILL);
    for (const auto& [id, pidfd] : slice.descendants) send_signal(pidfd, SIGKILL);
  }
  for (const Watched& container : slice.containers) send_signal(container.pidfd, SIGKILL);
  for (const auto& [id, attached] : slice.attached) send_signal(attached.pidfd, SIGKILL);
}

void Agent::stop(LiveSlice& slice, const std::string& why) {
  const uint64_t id = slice.record.id;
  if (!slice.stopping) {
    slice.stopping = true;
    slice.why = why;
    if (slice.persistent()) remove_cdi(settings_.cdi_dir, slice.name());
  }
  kill_all(slice);
  end_if_empty(id);
  // A tree may have grown a branch between the look and the blow.
  if (slices_.contains(id))
    loop_.after(kill_again, [this, id] {
      if (const auto living = slices_.find(id); living != slices_.end())
        stop(*living->second, living->second->why);
    });
}

void Agent::end_if_empty(uint64_t id) {
  const auto living = slices_.find(id);
  if (living == slices_.end()) return;
  LiveSlice& slice = *living->second;
  if (slice.persistent() && !slice.stopping) return;
  if (!slice.entered && !slice.stopping) return;
  if (has_processes(slice)) return;
  end(id, slice.stopping ? slice.why : "its last process ended");
}

void Agent::end(uint64_t id, const std::string& why) {
  const auto living = slices_.find(id);
  if (living == slices_.end()) return;
  LiveSlice& slice = *living->second;
  slice.stopping = true;
  slice.why = why;
  if (ledger_.living().contains(id)) {
    const auto change = ledger_.end(id, now(), why);
    if (const auto kept = ledger::post(ledger_, *store_, *change); !kept) {
      log::error("{}: cannot be ended yet: {}", slice.name(), kept.error().sentence);
      loop_.after(second, [this, id] { end_if_empty(id); });
      return;
    }
  }
  if (slice.persistent()) remove_cdi(settings_.cdi_dir, slice.name());
  for (const Watched* w : {&slice.creator, &slice.root, &slice.supervisor}) loop_.forget(w->pidfd.get());
  for (const Watched& w : slice.containers) loop_.forget(w.pidfd.get());
  for (const auto& [process, attached] : slice.attached) loop_.forget(attached.pidfd.get());
  if (slice.cgroup) {
    loop_.forget(slice.cgroup->events_fd());
    slice.cgroup->remove();
  }
  slice.ended = true;
  compute_ended(slice);
  fd_store_.drop(slice.name());
  runtime_.remove(slice.name());
  event(slice.name(), "ended: " + why);
  slices_.erase(living);
  if (policies_.settle(policy_holders()))
    event("", fmt::format("compute policy {} is in effect where the last slice has left",
                          text(policies_.desired())));
}

}  // namespace carve::node
