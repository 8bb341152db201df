#include "guest/launch/gate.h"

#include "guest/launch/completion_latency.h"

namespace carve::guest {
namespace {

constexpr uint64_t us = 1'000, ms = 1'000'000;
constexpr uint64_t spin_ns = 50 * us, imminent_spin_ns = 200 * us, first_sleep_ns = 200 * us,
                   later_sleep_ns = 5 * ms;
// Wakes the arbiter again in case the first wake was lost.
constexpr uint64_t wake_retry_interval_ns = 100 * ms;
constexpr uint64_t stuck_ns = 10 * ms;
// Work without progress may just take longer than estimated, and every launch admitted above the limit delays
// the next slice. So the first stall escapes admit one launch at a time. But the work may also be waiting for
// a hundred launches, so each later escape admits twice as many.
constexpr uint32_t single_stall_escapes = 4, max_escape_launches = 1024;
constexpr uint64_t ending_patience_ns = 1'000 * ms;
constexpr uint64_t in_flight_limit_without_agent_ns = 1 * ms;
// A launch without an estimate counts as min(in-flight limit, 4 ms): it runs by itself under a small limit,
// and together with a few others under a large one.
constexpr uint64_t unknown_ns = 4 * ms;

const shm::ControlDevice& device_of(const Process& p, unsigned device) { return p.control->devices[device]; }

shm::LeaseWord lease_of(const shm::ControlDevice& device) {
  return {device.lease.load(std::memory_order_acquire)};
}

Timetable timetable_of(const shm::ControlDevice& device) {
  return {device.fallback_period.load(std::memory_order_relaxed),
          device.fallback_offset.load(std::memory_order_relaxed),
          device.fallback_length.load(std::memory_order_relaxed)};
}

bool gate_allows(const Process& p, const shm::ControlDevice& device, shm::LeaseWord word, uint64_t now) {
  return may_launch(word, device.lease_deadline.load(std::memory_order_relaxed), now,
                    p.heartbeat->monotonic_ns.load(std::memory_order_relaxed), timetable_of(device));
}

// Returns whether the program is exiting and has used up its waiting time.
bool gave_up(Process& p, uint64_t waited) {
  return p.fence_page.ending.load(std::memory_order_relaxed) &&
         p.fence_page.ending_waits.fetch_add(waited, std::memory_order_relaxed) + waited > ending_patience_ns;
}

void spin(unsigned turns) {
  for (unsigned i = 0; i < turns; ++i) __builtin_ia32_pause();
}

// Polls the fences. Progress resets the stall escapes.
bool made_progress(Process& p, ThreadLaunchState& l, uint64_t now) {
  if (!poll_fences(p, l, now)) return false;
  l.stall_escapes = l.escape_launches = 0;
  return true;
}

void poll_at_gate(Process& p, ThreadLaunchState& l) {
  if (l.fence_count != 0) made_progress(p, l, monotonic_ns());
  discard_interval(l);
}

// Inserts fences after the thread's last launches if the arbiter is waiting for them to complete.
void show_end_of_work(Process& p, ThreadLaunchState& l, const shm::ControlDevice& device) {
  if (l.unfenced != 0 && lease_of(device).draining()) insert_fences(p, l);
}

// Waits until the gate allows a launch. Returns the word that allowed it. `own` is the thread's state, or
// null if it has none.
shm::LeaseWord wait_at_gate(Process& p, unsigned index, shm::ThreadWork& line, ThreadLaunchState* own,
                            bool* waited) {
  const shm::ControlDevice& device = device_of(p, index);
  shm::LeaseWord word = lease_of(device);
  uint64_t now = monotonic_ns();
  if (gate_allows(p, device, word, now)) return word;
  const uint64_t from = now;
  *waited = true;
  line.waiting_since.store(from, std::memory_order_seq_cst);
  const shm::ArbiterWord* arbiter = arbiter_of(p, index);
  const uint32_t looks = arbiter != nullptr ? arbiter->polls.load(std::memory_order_relaxed) : 0;
  wake(arbiter);
  if (own != nullptr) show_end_of_work(p, *own, device);
  uint64_t length = first_sleep_ns, woke_it = from, spins_until = from + spin_ns;
  for (;;) {
    const uint64_t before = now;
    if (now < spins_until) {
      spin(32);
    } else {
      // Does not sleep past the beginning of a timetable window, in case the timetable is needed.
      const uint64_t window = timetable_of(device).until_window(now);
      sleep_on(device.lease, word.value,
               window == 0 ? length : std::clamp<uint64_t>(window, 50 * us, length));
      if (arbiter != nullptr && (!arbiter->polled_since(looks) || now - woke_it > wake_retry_interval_ns)) {
        wake(arbiter);
        woke_it = now;
      }
      length = word.gate() == shm::GateState::closed ? later_sleep_ns : first_sleep_ns;
      // Fences that complete in the meantime update the estimates.
      if (own != nullptr) {
        poll_at_gate(p, *own);
        show_end_of_work(p, *own, device);
      }
    }
    // If several threads share the line, another of them may have reset it.
    if (line.waiting_since.load(std::memory_order_relaxed) == 0)
      line.waiting_since.store(from, std::memory_order_relaxed);
    const bool was_imminent = word.imminent();
    word = lease_of(device);
    now = monotonic_ns();
    if (word.imminent() && !was_imminent) spins_until = now + imminent_spin_ns;
    if (gate_allows(p, device, word, now) || gave_up(p, now - before)) break;
  }
  line.waiting_since.store(0, std::memory_order_release);
  line.waited.fetch_add(now - from, std::memory_order_relaxed);
  return word;
}

uint64_t in_flight_limit_of(shm::LeaseWord word) {
  return word.gate() == shm::GateState::lease ? word.in_flight_limit_ns() : in_flight_limit_without_agent_ns;
}

// Returns how much more fenced work the process may have in flight. The limit of a lease is that of one
// thread, and threads that take turns do not need it at the same time.
uint64_t left_for_process(Process& p, const ThreadLaunchState& l, uint64_t limit) {
  uint64_t whole = 0;
  const uint32_t threads = std::min(p.work->threads_used.load(std::memory_order_relaxed), shm::work_threads);
  for (unsigned i = 0; i < threads; ++i)
    if (p.work->thread[i].device.load(std::memory_order_relaxed) == l.device + 1) whole += limit;
  const uint64_t in_flight = fenced_work(p, l.device);
  return whole - std::min(whole, in_flight);
}

bool is_full(Process& p, const ThreadLaunchState& l, uint64_t ns, shm::LeaseWord word) {
  const uint64_t flying = l.in_flight + l.unfenced, limit = in_flight_limit_of(word);
  if (flying == 0 || l.escape_launches != 0 || limit == UINT64_MAX || ns <= limit - std::min(flying, limit))
    return false;
  return ns + l.unfenced > left_for_process(p, l, limit);
}

void allow_stall_escape(ThreadLaunchState& l) {
  const uint32_t doublings =
      l.stall_escapes < single_stall_escapes ? 0 : l.stall_escapes - single_stall_escapes + 1;
  l.escape_launches = doublings < 10 ? 1u << doublings : max_escape_launches;
  ++l.stall_escapes;
}

// Waits for this thread's own work until `ns` more may be submitted. Returns false if the gate closed before.
bool wait_for_credit(Process& p, ThreadLaunchState& l, uint64_t ns, shm::LeaseWord word) {
  const shm::ControlDevice& device = device_of(p, l.device);
  uint64_t now = monotonic_ns(), moved = now, from = now;
  uint64_t length = spin_ns;
  while (is_full(p, l, ns, word) && until_nearly_done(l, now) != 0) {
    insert_fences(p, l);
    const uint64_t before = now;
    if (l.in_flight == 0) return true;  // Without fences no completion can be observed.
    if (now - from < spin_ns) {
      spin(32);
    } else {
      sleep_for(std::min(length, until_nearly_done(l, now)));
      // With this much work in flight, the device stays busy during the sleep.
      length = std::min<uint64_t>(length * 2,
                                  std::clamp<uint64_t>(in_flight_limit_of(word) / 32, 200 * us, 2 * ms));
    }
    now = monotonic_ns();
    if (made_progress(p, l, now)) {
      moved = from = now;
      length = spin_ns;
    }
    // A kernel that is known to be long is not stuck, even if other slices run in between.
    if (now - moved > std::max(stuck_ns, 3 * l.line->longest.load(std::memory_order_relaxed)))
      allow_stall_escape(l);
    if (gave_up(p, now - before)) return true;
    const shm::LeaseWord newer = lease_of(device);
    if (newer.gate() == shm::GateState::open) return true;
    if (newer.gate() == shm::GateState::closed && newer.value != word.value) return false;
    word = newer;
  }
  return true;
}

void set_credit(Process& p, ThreadLaunchState& l) {
  const uint64_t limit = l.in_flight_limit;
  l.credit = limit == UINT64_MAX ? UINT64_MAX : limit - std::min(limit, l.in_flight);
  if (l.credit < l.fence_interval_ns) l.credit = std::max(l.credit, left_for_process(p, l, limit));
}

uint64_t fence_interval_of(const shm::ControlDevice& device) {
  return std::max<uint64_t>(device.fence_interval_ns.load(std::memory_order_relaxed), 1000);
}

// Sets the credit, so that the next launches need no further check for as long as possible.
void open(Process& p, ThreadLaunchState& l, const shm::ControlDevice& device, shm::LeaseWord word) {
  const bool leased = word.gate() == shm::GateState::lease && !l.shared && l.without_slot == 0;
  l.in_flight_limit = in_flight_limit_of(word);
  l.word = leased ? word.value : ~uint64_t{0};
  l.fence_interval_ns = fence_interval_of(device);
  set_credit(p, l);
}

// Waits at the gate if there is no free thread state. Does not wait if the driver will reject the device.
void wait_without_state(Process& p, const Launch& launch) {
  const Current where = current(p);
  if (where.result != CUDA_SUCCESS || where.device >= p.device_count || captured(launch.stream)) return;
  bool waited = false;
  wait_at_gate(p, where.device, p.work->thread[shm::work_threads - 1], nullptr, &waited);
}

// Returns the number of launches until the next check. A fence is polled at the launch after it, and a guess
// at every launch, because a late poll does not show how long the work took.
uint32_t launches_until_check(const ThreadLaunchState& l) {
  const bool guess = l.fence_count != 0 && l.fence[l.fence_count - 1].guess;
  return guess ? 1 : launches_per_deadline_check;
}

// Checks the deadline and the fences if only this check is due. Returns whether the launch was counted and
// may proceed.
bool count_after_check(Process& p, ThreadLaunchState& l, const shm::ControlDevice& device,
                       shm::LeaseWord word, const Launch& launch) {
  if (l.launches_until_check != 0 || word.value != l.word) return false;
  const uint64_t deadline = device.lease_deadline.load(std::memory_order_relaxed);
  if (deadline != 0 || l.fence_count != 0) {
    const uint64_t now = monotonic_ns();
    if (deadline != 0 && now > deadline) return false;
    if (l.fence_count != 0 && made_progress(p, l, now)) set_credit(p, l);
  }
  l.launches_until_check = launches_until_check(l) + 1;
  return count_fast_launch(l, launch.key(), launch.stream);
}

// Inserts a fence if the stream has at least `due` of pending work.
void insert_fence_if_due(Process& p, ThreadLaunchState& l, StreamEntry& entry, uint64_t due) {
  if (entry.pending == 0 || entry.pending < due) return;
  insert_fence(p, l, entry);
  l.waits = false;
  l.launches_until_check = 1;
}

// Waits until the gate is open, or until a lease and the in-flight limit allow the launch. Returns the word
// that allowed it. Fences that complete in the meantime may update the estimate.
shm::LeaseWord wait_for_gate_and_credit(Process& p, ThreadLaunchState& l, const Estimate& estimate) {
  const auto counts_as = [&](shm::LeaseWord under) {
    return estimate.measured != 0 ? estimate.ns : std::min(in_flight_limit_of(under), unknown_ns);
  };
  for (;;) {
    bool waited = false;
    const shm::LeaseWord word = wait_at_gate(p, l.device, *l.line, &l, &waited);
    if (waited) discard_interval(l);
    made_progress(p, l, monotonic_ns());
    if (word.gate() == shm::GateState::open || !is_full(p, l, counts_as(word), word)) return word;
    if (!l.shared) l.line->flags.fetch_or(shm::thread_back_pressured, std::memory_order_relaxed);
    const bool credit = wait_for_credit(p, l, counts_as(word), word);
    if (!l.shared) l.line->flags.fetch_and(~shm::thread_back_pressured, std::memory_order_relaxed);
    if (credit) return word;
  }
}

}  // namespace

Ticket begin_slow_launch(const Launch& launch) {
  Process* attached_process = attached();
  if (attached_process == nullptr) return {};
  Process& p = *attached_process;
  ThreadLaunchState* state = claim_thread_state(p);
  if (state == nullptr) return wait_without_state(p, launch), Ticket{};
  ThreadLaunchState& l = *state;
  const shm::ControlDevice& device = device_of(p, l.device);
  shm::LeaseWord word = lease_of(device);
  if (word.gate() == shm::GateState::open) return {};
  if (count_after_check(p, l, device, word, launch)) return {};

  l.launches_until_check = launches_per_deadline_check;
  if (captured(launch.stream)) {
    if (StreamEntry& entry = stream_entry_at(l, launch.stream); entry.name == launch.stream + 1)
      forget_pending(l, entry);
    return {};
  }
  const uint64_t fence_interval_ns = fence_interval_of(device);
  Estimate& estimate = estimate_of(l, launch, fence_interval_ns);
  StreamEntry& entry = stream_entry_of(p, l, launch.stream);
  const uint64_t due = fence_interval_ns - std::min(fence_interval_ns, estimate.ns);
  // Another slice may have the device while the gate is closed, so a fence has to wait.
  if (word.gate() == shm::GateState::lease || word.draining()) insert_fence_if_due(p, l, entry, due);
  word = wait_for_gate_and_credit(p, l, estimate);
  if (word.gate() == shm::GateState::open) return {};
  insert_fence_if_due(p, l, entry, due);
  if (l.escape_launches != 0) --l.escape_launches;
  if (is_idle(l)) {
    begin_busy(p, l, monotonic_ns());
    begin_latency_sample(l, launch.stream, word.uncontended());
  }
  // A poll may have updated the estimate. The value submitted here is also the value that is
  // subtracted later.
  const uint64_t ns = estimate.ns;
  record_use(l, estimate);
  submit(l, entry, ns);
  open(p, l, device, word);
  const bool waits = l.waits && word.uncontended();  // The wait's end shows when the work ended.
  return {&p, &l, &entry, ns, estimate.measured == 0 || (ns >= fence_interval_ns && !waits)};
}

void end_slow_launch(const Ticket& ticket, CUresult result) {
  ThreadLaunchState& l = *ticket.state;
  if (this_thread_state() != &l) return;
  if (result != CUDA_SUCCESS) {
    if (ticket.entry->pending <= ticket.ns) forget_pending(l, *ticket.entry);
  } else if (ticket.fence) {
    insert_fence(*ticket.process, l, *ticket.entry);
    set_credit(*ticket.process, l);
    l.launches_until_check = 1;
  }
}

}  // namespace carve::guest
