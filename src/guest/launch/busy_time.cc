#include "guest/launch/busy_time.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "guest/launch/completion_latency.h"

namespace carve::guest {
namespace {

void update(ThreadLaunchState& l, uint32_t first, uint64_t took, uint64_t estimated, bool outright = false) {
  const uint64_t longest = update_estimates(l, first, took, estimated, outright);
  if (!l.shared) l.line->longest.store(longest, std::memory_order_relaxed);
}

// The fences that one poll found complete.
struct CompletedFences {
  uint64_t ns = 0;  // The estimated duration of their work.
  uint64_t begun_at = 0, inserted_at = 0;
  uint32_t first = 0, count = 0;
  bool alone = false, guess = false;
};

void open_window(ThreadLaunchState& l, bool open) {
  l.busy_open = open;
  l.busy_fences = 0;
  l.busy_ns = l.busy_work = 0;
}

// `behind` means that the oldest fence in flight comes after other threads' work.
void update_from(ThreadLaunchState& l, const CompletedFences& seen, uint64_t before, uint64_t now,
                 bool behind) {
  const uint64_t first_since = l.first_since;
  if (before == 0 || seen.count != 0 || behind) l.first_since = now;
  if (before == 0 || now == 0) return open_window(l, false);
  // The oldest fence's work had started by `first_since` at the latest and was still running at the last
  // poll. Work that took more than twice its estimate is corrected fully, whatever the windows below show.
  // Without this rule a kernel longer than a lease would never be measured from one completion to the next.
  const uint64_t from = std::max(first_since, seen.inserted_at);
  if (seen.count != 0 && before > from && before - from > 2 * seen.ns) {
    update(l, seen.first, now - from, seen.ns, true);
    return open_window(l, true);
  }
  // A fence in flight at the last poll is still in flight: the device was not idle in between.
  if (l.fence_count != 0 && l.fence[0].inserted_at <= before) {
    // Measures from one observed completion to another. Both are observed late, by the same amount on
    // average.
    if (!l.busy_open) return open_window(l, seen.count != 0);
    if (seen.count != 0 && l.busy_fences == 0) l.busy_from = seen.first;
    l.busy_ns += now - before;
    l.busy_work += seen.ns;
    l.busy_fences += seen.count;
    if (seen.count == 0 || (l.busy_fences < 8 && l.busy_ns < 4 * l.fence_interval_ns)) return;
    update(l, l.busy_from, l.busy_ns, l.busy_work);
    return open_window(l, true);
  }
  open_window(l, false);
  if (seen.count == 0) return;
  // The work took at most this long, and about this long if it was launched in one piece and the polls were
  // frequent. If the host is slower than the device, a batch is almost complete by the time its fence is
  // inserted.
  const uint64_t took = now - seen.begun_at;
  const bool in_one_piece = seen.inserted_at - seen.begun_at <= took / 8;
  const bool watched = seen.alone && seen.count == 1 && in_one_piece && now - before <= took / 8 + 100'000;
  const bool closely = watched && now - before <= took / 16;
  if (took < seen.ns || closely || (watched && seen.guess))
    update(l, seen.first, took, seen.ns);
  else if (seen.guess)
    update(l, seen.first, seen.ns, seen.ns);  // No longer a guess: a launch with a guessed duration waits
                                              // until it can run by itself.
}

// Returns the estimated ns that the other threads of the process submitted to the device, including ended
// threads.
uint64_t submitted_by_others(Process& p, const ThreadLaunchState& l) {
  uint64_t sum = 0;
  const uint32_t threads = std::min(p.work->threads_used.load(std::memory_order_relaxed), shm::work_threads);
  for (unsigned i = 0; threads > 1 && i < threads; ++i) {
    const shm::ThreadWork& line = p.work->thread[i];
    const uint32_t device = line.device.load(std::memory_order_relaxed);
    if (&line != l.line && (device == 0 || device == l.device + 1))
      sum += line.submitted.load(std::memory_order_relaxed);
  }
  return sum;
}

uint32_t lease_number(const Process& p, const ThreadLaunchState& l) {
  return shm::LeaseWord{p.control->devices[l.device].lease.load(std::memory_order_relaxed)}.number();
}

// Updates the estimates when the thread has waited for all work since it became busy, `took` ns ago. The work
// took at most that long. `whole` means that the device was busy for most of that time with the work of this
// thread and of the others.
void update_from_wait(Process& p, ThreadLaunchState& l, uint64_t took, bool whole) {
  // Other slices used the device in between.
  if (l.disturbed || lease_number(p, l) != l.lease_then) return;
  const uint64_t own = l.submitted - l.submitted_then;
  const uint64_t all = own + submitted_by_others(p, l) - l.others_then;
  if (took < own)
    update(l, l.batch_then, took, own);
  else if (whole && took > all)
    update(l, l.batch_then, took, all);
}

}  // namespace

bool poll_fences(Process& p, ThreadLaunchState& l, uint64_t now) {
  CompletedFences seen;
  uint32_t kept = 0;
  for (unsigned i = 0; i < l.fence_count; ++i) {
    const Fence fence = l.fence[i];
    if (!is_signaled(p, fence)) {
      l.fence[kept++] = fence;
      continue;
    }
    if (seen.count++ == 0) {
      seen.first = fence.batch;
      seen.begun_at = fence.begun_at;
      seen.inserted_at = fence.inserted_at;
      seen.alone = fence.alone;
      seen.guess = fence.guess;
    }
    seen.ns += fence.ns;
  }
  l.fence_count = kept;
  l.in_flight -= std::min(l.in_flight, seen.ns);
  update_from(l, seen, l.polled_at, now, kept != 0 && is_behind_others(p, l.fence[0]));
  l.polled_at = now;
  return seen.count != 0;
}

void begin_busy(Process& p, ThreadLaunchState& l, uint64_t now) {
  l.busy_since = now;
  l.submitted_then = l.submitted;
  l.others_then = submitted_by_others(p, l);
  l.batch_then = l.batch;
  l.lease_then = lease_number(p, l);
  l.disturbed = false;
  if (l.shared) return;
  const shm::BusyWord busy{l.line->busy.load(std::memory_order_relaxed)};
  l.total_then = busy.total(now);
  // Subtract the completion latency here and not at the end, so that the total never decreases.
  l.line->busy.store(shm::BusyWord::since(now + completion_latency(l), l.total_then).value,
                     std::memory_order_relaxed);
}

void end_busy(ThreadLaunchState& l, uint64_t now) {
  l.busy_since = 0;
  l.credit = 0;  // The next launch takes the slow path and begins the busy time.
  l.stall_escapes = l.escape_launches = 0;
  l.polled_at = 0;
  if (l.shared) return;
  const shm::BusyWord busy{l.line->busy.load(std::memory_order_relaxed)};
  l.line->idle_at.store(now, std::memory_order_relaxed);
  l.line->busy.store(shm::BusyWord::idle(std::max(busy.total(now), l.total_then)).value,
                     std::memory_order_relaxed);
  l.line->flags.store(0, std::memory_order_relaxed);
}

void Waiting::begin() {
  process_ = attached();
  if (process_ == nullptr) return;
  ThreadLaunchState& l = *state_;
  from_ = monotonic_ns();
  poll_fences(*process_, l, 0);
  running_ = l.in_flight != 0;
  if (!l.shared) l.line->flags.fetch_or(shm::thread_synchronises, std::memory_order_relaxed);
  // If a thread waits for its own short work, the end of the wait shows when the work ended. Threads that
  // share a line do not report busy time.
  const shm::LeaseWord word{process_->control->devices[l.device].lease.load(std::memory_order_relaxed)};
  if (l.shared || !word.uncontended()) insert_fences(*process_, l);
  close_latency_sample(l);
}

void Waiting::end() {
  ThreadLaunchState& l = *state_;
  if (this_thread_state() != &l) return;  // A callback ran in between, or the process forked.
  Process& p = *process_;
  const uint64_t now = monotonic_ns();
  for (StreamEntry& entry : l.stream) {
    const bool waited_for =
        what_ == whole_context ? entry.context == 0 || entry.context == l.context : entry.name == what_ + 1;
    if (waited_for) forget_pending(l, entry);
  }
  if (what_ == whole_context) {
    l.without_slot = 0;
    set_unfenced(l, l.unfenced);
  }
  poll_fences(p, l, 0);
  if (!l.shared) l.line->flags.fetch_and(~shm::thread_synchronises, std::memory_order_relaxed);
  if (l.in_flight != 0 || l.unfenced != 0 || l.without_slot != 0) return;
  // The device was busy until now if it was busy when the wait began, or if the wait was long.
  const uint64_t took = now - l.busy_since;
  update_from_wait(p, l, took, running_ || now - from_ >= took / 8);
  if (!l.disturbed) finish_latency_sample(l, took);
  end_busy(l, now);
  l.waits = true;
  const shm::ControlDevice& device = p.control->devices[l.device];
  if (shm::LeaseWord{device.lease.load(std::memory_order_relaxed)}.notify_on_idle())
    wake(arbiter_of(p, l.device));
}

const shm::ArbiterWord* arbiter_of(const Process& p, unsigned device) {
  const uint32_t arbiter = p.control->devices[device].arbiter;
  return arbiter < shm::max_devices ? &p.heartbeat->arbiter[arbiter] : nullptr;
}

void wake(const shm::ArbiterWord* arbiter) {
  if (arbiter != nullptr && arbiter->asleep.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, &arbiter->asleep, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace carve::guest
