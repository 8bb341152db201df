// The end of processes and slices.
//
// If a slice has a cgroup, the kernel reports when the cgroup is empty and kills its processes in one step.
// Without a cgroup, the slice's processes are the descendants of its program. They are scanned when one of
// them ends, once a second while the slice runs (so that a process is known before its parents end), and five
// times a second while the slice lingers.
#include <algorithm>
#include <csignal>

#include "node/agent/agent.h"
#include "os/clock.h"
#include "os/log.h"

namespace carve::node {
namespace {

constexpr int64_t kill_again = 100 * os::millisecond;

}  // namespace

void Agent::leave() {
  if (tree_) rmdir((tree_->mount + "/" + group_).c_str());  // Fails while a slice's cgroup is inside.
}

void Agent::watch(LiveSlice& slice, Watched& process,
                  void (Agent::*ended)(LiveSlice&, const os::ProcessId&)) {
  process.pidfd = os::open_process(process.id);
  const auto call = [this, id = slice.record.id, process_id = process.id, ended] {
    if (const auto living = slices_.find(id); living != slices_.end())
      (this->*ended)(*living->second, process_id);
  };
  if (!process.pidfd) {
    loop_.after(0, call);  // The process has ended. Deferred, because the caller still uses the slice.
    return;
  }
  loop_.watch(process.pidfd.get(), EPOLLIN, [this, fd = process.pidfd.get(), call](uint32_t) {
    loop_.forget(fd);
    call();
  });
}

void Agent::watch_cgroup(LiveSlice& slice) {
  slice.cgroup->populated();  // Clears the notification of earlier changes.
  loop_.watch(slice.cgroup->events_fd(), EPOLLPRI,
              [this, id = slice.record.id](uint32_t) { end_if_empty(id); });
}

void Agent::creator_ended(LiveSlice& slice, const os::ProcessId&) {
  if (!slice.entered) end(slice.record.id, "its creator ended before a program entered it");
}

void Agent::root_ended(LiveSlice& slice, const os::ProcessId&) {
  if (slice.cgroup ? slice.cgroup->populated() : has_processes(slice))
    event(slice.name(), "program ended; its descendants run on");
  end_if_empty(slice.record.id);
}

void Agent::supervisor_ended(LiveSlice& slice, const os::ProcessId&) {
  if (!slice.entered) return end(slice.record.id, "its supervisor ended before a program entered it");
  if (slice.cgroup) return;
  if (has_processes(slice)) stop(slice, "its supervisor ended");
  end_if_empty(slice.record.id);
}

void Agent::container_ended(LiveSlice& slice, const os::ProcessId& init) {
  for (size_t i = 0; i < slice.containers.size(); ++i) {
    if (slice.containers[i].id != init) continue;
    slice.containers.erase(slice.containers.begin() + static_cast<ptrdiff_t>(i));
    slice.identity.containers.erase(slice.identity.containers.begin() + static_cast<ptrdiff_t>(i));
    event(slice.name(), fmt::format("container of process {} ended", init.pid));
    break;
  }
  write_state(slice);
  end_if_empty(slice.record.id);
}

// Returns whether a process of the slice lives.
bool Agent::has_processes(LiveSlice& slice) {
  if (slice.cgroup && slice.cgroup->populated()) return true;
  if (!slice.attached.empty() || !slice.containers.empty()) return true;
  if (slice.cgroup || slice.outlives_processes()) return false;
  if (slice.root.pidfd && os::alive(slice.root.pidfd)) return true;
  scan_descendants(slice);
  return !slice.descendants.empty();
}

// Without a cgroup: finds the living descendants of the slice's processes.
void Agent::scan_descendants(LiveSlice& slice) {
  std::erase_if(slice.descendants, [](const auto& known) { return !os::alive(known.second); });
  const std::vector<os::ProcessStat> all = os::all_processes();
  std::map<pid_t, const os::ProcessStat*> by_pid;
  for (const os::ProcessStat& p : all) by_pid[p.id.pid] = &p;
  SliceIdentity wider =
      slice.identity;  // Known descendants are ancestors too, because their own parent may have ended.
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
    if (!node::slice_of(p.id.pid, {&wider}, world)) continue;
    if (os::Fd pidfd = os::open_process(p.id)) slice.descendants.emplace(p.id, std::move(pidfd));
  }
}

// Kills all processes of the slice. With a cgroup the kernel kills them in one step, also those that fork.
void Agent::kill_all(LiveSlice& slice) {
  if (slice.cgroup) slice.cgroup->kill();
  if (!slice.cgroup && !slice.outlives_processes()) {
    scan_descendants(slice);
    if (slice.root.pidfd) os::send_signal(slice.root.pidfd, SIGKILL);
    for (const auto& [id, pidfd] : slice.descendants) os::send_signal(pidfd, SIGKILL);
  }
  for (const Watched& container : slice.containers) os::send_signal(container.pidfd, SIGKILL);
  for (const auto& [id, attached] : slice.attached) os::send_signal(attached.pidfd, SIGKILL);
}

void Agent::stop(LiveSlice& slice, const std::string& why) {
  const uint64_t id = slice.record.id;
  if (!slice.stopping) {
    slice.stopping = true;
    slice.why = why;
    if (slice.outlives_processes()) remove_cdi(settings_.cdi_dir, slice.name());
  }
  kill_all(slice);
  end_if_empty(id);
  // A process may have forked between the scan and the kill, so kill again.
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
  if (slice.outlives_processes() && !slice.stopping) return;
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
    const auto change = ledger_.end(id, now(), why, slice.busy_ns);
    if (const auto kept = ledger::post(ledger_, *store_, *change); !kept) {
      os::log::error("{}: the end cannot be recorded yet: {}", slice.name(), kept.error().sentence);
      loop_.after(os::second, [this, id] { end_if_empty(id); });
      return;
    }
  }
  if (slice.outlives_processes()) remove_cdi(settings_.cdi_dir, slice.name());
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
    event("", fmt::format("compute policy {} made effective on devices without slices",
                          text(policies_.desired())));
}

}  // namespace carve::node
