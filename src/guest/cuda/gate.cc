#include "guest/cuda/gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest/cuda/lateness.h"

namespace carve::guest {
namespace {

constexpr uint64_t us = 1'000, ms = 1'000'000;
constexpr uint64_t spin_ns = 50 * us, first_nap_ns = 200 * us, later_nap_ns = 5 * ms;
constexpr uint64_t again_ns = 100 * ms;  // What an arbiter that saw a wait and forgot it would cost.
constexpr uint64_t stuck_ns = 10 * ms;
// Work that does not move may only be longer than is known, and whatever is let go then stands before the
// next slice's: first one launch at a time, then, since it may wait for a hundred, twice as many each time.
constexpr uint32_t single_excuses = 4, most_excused = 1024;
constexpr uint64_t ending_patience_ns = 1'000 * ms;
constexpr uint64_t bound_without_agent_ns = 1 * ms;
// What is not known may take any time: it goes alone among others, and where much may be in flight a few do.
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

bool lets_launch(const Process& p, const shm::ControlDevice& device, shm::LeaseWord word, uint64_t now) {
  return may_launch(word, device.lease_deadline.load(std::memory_order_relaxed), now,
                    p.heartbeat->monotonic_ns.load(std::memory_order_relaxed), timetable_of(device));
}

// Whether the program is ending and waited long enough.
bool ends(Process& p, uint64_t waited) {
  return p.meter.ending.load(std::memory_order_relaxed) &&
         p.meter.ending_waits.fetch_add(waited, std::memory_order_relaxed) + waited > ending_patience_ns;
}

void spin(unsigned turns) {
  for (unsigned i = 0; i < turns; ++i) __builtin_ia32_pause();
}

void nap(uint64_t ns) {
  const timespec t = {0, static_cast<long>(ns)};
  nanosleep(&t, nullptr);
}

// Until the low half of the word changes, or `ns` have passed.
void sleep_on(const shm::ControlDevice& device, shm::LeaseWord word, uint64_t ns) {
  const timespec t = {0, static_cast<long>(ns)};
  syscall(SYS_futex, &device.lease, FUTEX_WAIT, static_cast<uint32_t>(word.value), &t, nullptr, 0);
}

// Looks how far the work is; what moves needs no more excuses.
bool moves(Process& p, Launching& l, uint64_t now) {
  if (!look(p, l, now)) return false;
  l.excuses = l.excused = 0;
  return true;
}

void look_from_the_gate(Process& p, Launching& l) {
  if (l.mark_count != 0) moves(p, l, monotonic_ns());
  look_away(l);
}

// Waits until the gate lets a launch go; the word that did. `own` is the thread's, if it has a place.
shm::LeaseWord wait_at_gate(Process& p, unsigned index, shm::ThreadWork& line, Launching* own, bool* waited) {
  const shm::ControlDevice& device = device_of(p, index);
  shm::LeaseWord word = lease_of(device);
  uint64_t now = monotonic_ns();
  if (lets_launch(p, device, word, now)) return word;
  const uint64_t from = now;
  *waited = true;
  line.waiting_since.store(from, std::memory_order_seq_cst);
  const shm::ArbiterWord* arbiter = arbiter_of(p, index);
  const uint32_t looks = arbiter != nullptr ? arbiter->looks.load(std::memory_order_relaxed) : 0;
  wake(arbiter);
  uint64_t length = first_nap_ns, woke_it = from;
  for (;;) {
    const uint64_t before = now;
    if (now - from < spin_ns) {
      spin(32);
    } else {
      // A window of the timetable, should it be needed, is not slept through.
      const uint64_t window = timetable_of(device).until_window(now);
      sleep_on(device, word, window == 0 ? length : std::clamp<uint64_t>(window, 50 * us, length));
      if (arbiter != nullptr && (!arbiter->looked_since(looks) || now - woke_it > again_ns)) {
        wake(arbiter);
        woke_it = now;
      }
      length = word.pass() == shm::Pass::closed ? later_nap_ns : first_nap_ns;
      // What drains meanwhile says how long it takes.
      if (own != nullptr) look_from_the_gate(p, *own);
    }
    // Where several threads share the line one of them may have gone.
    if (line.waiting_since.load(std::memory_order_relaxed) == 0)
      line.waiting_since.store(from, std::memory_order_relaxed);
    word = lease_of(device);
    now = monotonic_ns();
    if (lets_launch(p, device, word, now) || ends(p, now - before)) break;
  }
  line.waiting_since.store(0, std::memory_order_release);
  line.waited.fetch_add(now - from, std::memory_order_relaxed);
  return word;
}

uint64_t bound_of(shm::LeaseWord word) {
  return word.pass() == shm::Pass::lease ? word.bound_ns() : bound_without_agent_ns;
}

bool is_full(const Launching& l, uint64_t ns, shm::LeaseWord word) {
  const uint64_t flying = l.in_flight + l.unmarked, bound = bound_of(word);
  return flying != 0 && l.excused == 0 && bound != UINT64_MAX && ns > bound - std::min(flying, bound);
}

void excuse(Launching& l) {
  const uint32_t doublings = l.excuses < single_excuses ? 0 : l.excuses - single_excuses + 1;
  l.excused = doublings < 10 ? 1u << doublings : most_excused;
  ++l.excuses;
}

// Waits for this thread's own work until `ns` more may go. False where the gate closed meanwhile.
bool wait_for_room(Process& p, Launching& l, uint64_t ns, shm::LeaseWord word) {
  const shm::ControlDevice& device = device_of(p, l.device);
  uint64_t now = monotonic_ns(), moved = now, from = now;
  uint64_t length = spin_ns;
  while (is_full(l, ns, word)) {
    put_markers(p, l);
    const uint64_t before = now;
    if (l.in_flight == 0) return true;  // Nothing that would ever be seen to complete.
    if (now - from < spin_ns) {
      spin(32);
    } else {
      nap(length);
      // With much in flight the device does not run dry meanwhile.
      length = std::min<uint64_t>(length * 2, std::clamp<uint64_t>(bound_of(word) / 32, 200 * us, 2 * ms));
    }
    now = monotonic_ns();
    if (moves(p, l, now)) {
      moved = from = now;
      length = spin_ns;
    }
    // A kernel that is known to be long is not stuck, also where others have their turns in between.
    if (now - moved > std::max(stuck_ns, 3 * l.line->longest.load(std::memory_order_relaxed))) excuse(l);
    if (ends(p, now - before)) return true;
    const shm::LeaseWord newer = lease_of(device);
    if (newer.pass() == shm::Pass::free) return true;
    if (newer.pass() == shm::Pass::closed && newer.value != word.value) return false;
    word = newer;
  }
  return true;
}

void set_room(Launching& l) {
  l.room = l.bound == UINT64_MAX ? UINT64_MAX : l.bound - std::min(l.bound, l.in_flight);
}

// Sees to it that the next launches pass without another look for as long as they may.
void open(Launching& l, const shm::ControlDevice& device, shm::LeaseWord word) {
  const bool leased = word.pass() == shm::Pass::lease && !l.shared && l.unplaced == 0;
  l.bound = bound_of(word);
  l.word = leased ? word.value : ~uint64_t{0};
  l.batch_ns = std::max<uint64_t>(device.batch_ns.load(std::memory_order_relaxed), 1000);
  set_room(l);
}

}  // namespace

Ticket pass_slowly(const Launch& launch) {
  Process* attached_process = attached();
  if (attached_process == nullptr) return {};
  Process& p = *attached_process;
  Launching* mine_here = launching(p);
  bool waited = false;
  if (mine_here == nullptr) {
    // No place left, or a device that the driver will refuse.
    const Current where = current(p);
    if (where.result == CUDA_SUCCESS && where.device < p.device_count && !captured(launch.stream))
      wait_at_gate(p, where.device, p.work->thread[shm::work_threads - 1], nullptr, &waited);
    return {};
  }
  Launching& l = *mine_here;
  const shm::ControlDevice& device = device_of(p, l.device);
  const uint64_t key = launch.key();
  shm::LeaseWord word = lease_of(device);
  if (word.pass() == shm::Pass::free) return {};

  // The end of the lease alone.
  if (l.turns == 0 && word.value == l.word) {
    const uint64_t deadline = device.lease_deadline.load(std::memory_order_relaxed);
    if (deadline == 0 || monotonic_ns() <= deadline) {
      l.turns = turns_per_look + 1;
      if (passes(l, key, launch.stream)) return {};
    }
  }

  l.turns = turns_per_look;
  if (captured(launch.stream)) {
    if (Memo& memo = memo_at(l, launch.stream); memo.name == launch.stream + 1) forget_pending(l, memo);
    return {};
  }
  const uint64_t batch_ns = std::max<uint64_t>(device.batch_ns.load(std::memory_order_relaxed), 1000);
  Estimate& estimate = estimate_of(l, launch, batch_ns);
  Memo& memo = memo_of(p, l, launch.stream);
  const auto counts_as = [&](shm::LeaseWord under) {
    return estimate.learned != 0 ? estimate.ns : std::min(bound_of(under), unknown_ns);
  };
  if (memo.pending != 0 && memo.pending + estimate.ns >= batch_ns) {
    put_marker(p, l, memo);
    l.waits = false;
  }
  for (;;) {
    word = wait_at_gate(p, l.device, *l.line, &l, &waited);
    if (waited) look_away(l);
    moves(p, l, monotonic_ns());
    if (word.pass() == shm::Pass::free || !is_full(l, counts_as(word), word)) break;
    if (!l.shared) l.line->flags.fetch_or(shm::thread_presses, std::memory_order_relaxed);
    const bool room = wait_for_room(p, l, counts_as(word), word);
    if (!l.shared) l.line->flags.fetch_and(~shm::thread_presses, std::memory_order_relaxed);
    if (room) break;
    waited = false;
  }
  if (word.pass() == shm::Pass::free) return {};
  if (l.excused != 0) --l.excused;
  if (is_idle(l)) {
    go_busy(l, monotonic_ns());
    begin_sample(l, launch.stream, word.unwatched());
  }
  // Learning may have changed it; what is submitted is what is taken back.
  const uint64_t ns = estimate.ns;
  touch(l, estimate);
  submit(l, memo, ns);
  open(l, device, word);
  const bool waits = l.waits && word.unwatched();  // Its end is seen as the wait's.
  return {&p, &l, &memo, ns, estimate.learned == 0 || (ns >= batch_ns && !waits)};
}

void passed(const Ticket& ticket, CUresult result) {
  Launching& l = *ticket.launching;
  if (own() != &l) return;
  if (result != CUDA_SUCCESS) {
    if (ticket.memo->pending <= ticket.ns) forget_pending(l, *ticket.memo);
  } else if (ticket.mark) {
    put_marker(*ticket.process, l, *ticket.memo);
    set_room(l);
  }
}

}  // namespace carve::guest
