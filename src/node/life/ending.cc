#include "node/life/ending.h"

#include "core/invariant.h"
#include "node/identity/cgroup_moves.h"
#include "node/slice/processes.h"
#include "node/slots/slot_sockets.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/user.h"

namespace carve::node {
namespace {

constexpr int64_t kill_again_ns = 100 * os::millisecond;

// Returns why the slice ends: its time limit if that was reached, otherwise `why`.
std::string reason_of(const LiveSlice& slice, const std::string& why) {
  if (!slice.is_over_time()) return why;
  return fmt::format("its time limit of {} was reached", text_of_seconds(slice.deadline->limit_seconds));
}

}  // namespace

void Ending::watch(LiveSlice& slice, Watched& process, Ended ended) {
  process.pidfd = os::open_process(process.id);
  const auto call = [this, id = slice.id(), process_id = process.id, ended] {
    if (LiveSlice* living = node_.slices.find(id)) (this->*ended)(*living, process_id);
  };
  if (!process.pidfd) {
    node_.loop.after(0, call);  // Deferred, because the caller still uses the slice.
    return;
  }
  node_.loop.watch(process.pidfd.get(), EPOLLIN, [this, fd = process.pidfd.get(), call](uint32_t) {
    node_.loop.forget(fd);
    call();
  });
}

void Ending::watch_cgroup(LiveSlice& slice) {
  slice.cgroup->populated();  // Clears the notification of earlier changes.
  node_.loop.watch(slice.cgroup->events_fd(), EPOLLPRI, [this, id = slice.id()](uint32_t) {
    // The notification remains until the file is read, even if the slice outlives its processes.
    if (const LiveSlice* const live = node_.slices.find(id)) live->cgroup->populated();
    end_if_empty(id);
  });
}

void Ending::creator_ended(LiveSlice& slice, const os::ProcessId&) {
  if (!slice.entered) end(slice.id(), "its creator ended before a program entered it");
}

void Ending::root_ended(LiveSlice& slice, const os::ProcessId&) {
  if (slice.cgroup ? slice.cgroup->populated() : has_processes(slice))
    node_.event(slice.name(), "program ended; its descendants keep running");
  end_if_empty(slice.id());
}

void Ending::supervisor_ended(LiveSlice& slice, const os::ProcessId& supervisor) {
  if (slice.supervisor.id != supervisor) return;  // Another supervisor has the slice now.
  // Programs that the supervisor left behind must not run at the same time as the next one.
  if (slice.outlives_processes()) return kill_programs(slice);
  if (slice.is_kept) return stop(slice, "its supervisor ended");
  if (!slice.entered) return end(slice.id(), "its supervisor ended before a program entered it");
  if (slice.cgroup) return;
  const uint64_t id = slice.id();
  if (has_processes(slice)) stop(slice, "its supervisor ended");
  end_if_empty(id);
}

void Ending::container_ended(LiveSlice& slice, const os::ProcessId& init) {
  invariant(slice.containers.size() == slice.identity.containers.size(), "the two lists are parallel");
  for (size_t i = 0; i < slice.containers.size(); ++i) {
    if (slice.containers[i].id != init) continue;
    slice.containers.erase(slice.containers.begin() + static_cast<ptrdiff_t>(i));
    slice.identity.containers.erase(slice.identity.containers.begin() + static_cast<ptrdiff_t>(i));
    node_.event(slice.name(), fmt::format("container of process {} ended", init.pid));
    break;
  }
  node_.pages.write_state(slice);
  end_if_empty(slice.id());
}

void Ending::stop(LiveSlice& slice, const std::string& why) {
  const uint64_t id = slice.id();
  if (!slice.stopping) {
    slice.stopping = true;
    slice.why = reason_of(slice, why);
    withdraw(node_, slice);
  }
  kill_all(slice);
  end_if_empty(id);
  // A process may have forked between the scan and the kill, so the kill is repeated.
  if (node_.slices.find(id) != nullptr)
    node_.loop.after(kill_again_ns, [this, id] {
      if (LiveSlice* living = node_.slices.find(id)) stop(*living, living->why);
    });
}

void Ending::release(LiveSlice& slice, const std::string& why) {
  if (!slice.released && !slice.stopping) {
    slice.released = true;
    slice.why = why;
    withdraw(node_, slice);
    node_.pages.write_state(slice);
    if (has_processes(slice)) node_.event(slice.name(), why + "; the slice ends with its last process");
  }
  end_if_empty(slice.id());
}

void Ending::end_if_empty(uint64_t id) {
  LiveSlice* const slice = node_.slices.find(id);
  if (slice == nullptr) return;
  const bool ending = slice->stopping || slice->released;
  if (slice->outlives_processes() && !ending) return;
  if (!slice->entered && !ending) return;
  if (slice->is_kept_alive() && !ending) return;
  if (has_processes(*slice)) return;
  end(id, ending ? slice->why
                 : reason_of(*slice, slice->is_kept ? "its supervisor ended" : "its last process ended"));
}

void Ending::watch_deadline(LiveSlice& slice) {
  if (!slice.deadline || slice.stopping) return;
  const NextDeadlineStep next = next_step(*slice.deadline, os::monotonic_ns());
  if (next.step == DeadlineStep::end) return stop(slice, "");
  if (next.step == DeadlineStep::wait)
    return node_.loop.after(next.wait_ns, [this, id = slice.id(), deadline = *slice.deadline] {
      LiveSlice* const living = node_.slices.find(id);
      if (living != nullptr && living->deadline == deadline) watch_deadline(*living);
    });
  slice.deadline->warned_ns = os::monotonic_ns();
  node_.pages.write_state(slice);
  node_.event(slice.name(),
              fmt::format("{}; SIGTERM was sent, and its processes are killed in {}", reason_of(slice, ""),
                          text_of_seconds(slice.deadline->grace_seconds)));
  terminate(slice);
  watch_deadline(slice);
}

// The program of a slice with a cgroup may have moved itself to another slice (cgroup_moves.h). If it was the
// last process, its slice ends before a sample could notice the move.
void Ending::report_moved_program(const LiveSlice& slice) {
  if (!slice.cgroup || !slice.root.pidfd || !os::alive(slice.root.pidfd)) return;
  const LiveSlice* const now = node_.slices.slice_of(slice.root.id.pid);
  if (now == nullptr || now->id() == slice.id()) return;
  const std::string text = moved_text(slice.root.id.pid, slice.name(), now->name());
  node_.event(slice.name(), text);
  node_.event(now->name(), text);
}

void Ending::end(uint64_t id, const std::string& why) {
  LiveSlice* const slice = node_.slices.find(id);
  if (slice == nullptr) return;
  if (!slice->stopping) report_moved_program(*slice);
  slice->stopping = true;
  slice->why = why;
  slice->raise_peaks();
  if (node_.ledger().living().contains(id)) {
    const auto change = node_.ledger().end(id, stamp_now(), why, slice->used_amounts());
    invariant(change.has_value(), "a live record can end");
    if (const auto kept = node_.books.post(*change); !kept) {
      os::log::error(os::cause_of_user(slice->granted().owner), "{}: cannot record the slice's end yet: {}",
                     slice->name(), kept.error().message);
      node_.loop.after(os::second, [this, id] { end_if_empty(id); });
      return;
    }
  }
  withdraw(node_, *slice);
  close_attach_point(node_, *slice);
  for (const Watched* w : {&slice->creator, &slice->root, &slice->supervisor})
    node_.loop.forget(w->pidfd.get());
  for (const Watched& w : slice->containers) node_.loop.forget(w.pidfd.get());
  for (const auto& [process, attached] : slice->attached) {
    node_.loop.forget(attached.pidfd.get());
    node_.ended_processes.add({process.pid, id, slice->name(), attached_span(process)});
  }
  if (slice->cgroup) {
    node_.loop.forget(slice->cgroup->events_fd());
    slice->cgroup->remove();
  }
  node_.guard->forget(id);
  slice->ended = true;
  node_.compute.remove(id, slice->granted());
  arbitrate(node_, slice->granted());
  node_.pages.remove(slice->name());
  node_.event(slice->name(), "ended: " + why);
  node_.slices.erase(id);
  if (node_.compute.policies.settle(node_.policy_holders()))
    node_.event("", fmt::format("compute policy {} took effect on devices without slices",
                                text(node_.compute.policies.desired())));
  if (node_.kept_settings.settle(node_.memory_unit_holders()))
    node_.event("",
                fmt::format("memory unit {} took effect", text(node_.kept_settings.memory_unit().effective)));
}

}  // namespace carve::node
