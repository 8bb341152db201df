// The launch gate. The agent grants a slice's leases per device through one word in Control (wire/shm/work.h,
// LeaseWord), which each launch reads. If the gate is open, the launch proceeds immediately (about 1 ns).
// Under a lease the launch is also counted (about 5 ns), without reading a clock, taking a lock or calling a
// function. The other cases are out of line (gate.cc):
//
// * Closed gate: the thread notifies the arbiter, spins for 50 us, then sleeps on the word. If the heartbeat
//   is older than 200 ms, the device's fallback timetable decides. Without a timetable the launch proceeds.
// * If the arbiter waits for the end of the slice's work (LeaseWord::draining), a thread at the gate inserts
//   a fence after its last launches. Otherwise their end would be estimated, and charged, too late.
// * A lease past its deadline is a closed gate. Every 16th launch and every fence check the deadline.
// * Each thread has at most the lease's in-flight limit of estimated work in flight. It may have more while
//   the process has less than the sum of the limits of all its threads. A thread above the limit waits for
//   its own work to complete. One launch is always allowed, and a second one shortly before the first ends.
//   If no fence completes for 10 ms, the work may be waiting for a launch that is still to come. Then one
//   more launch is allowed (a stall escape), later twice as many each time.
//
// Only the launching thread waits. It holds no lock of this library, and it does not wait while its stream is
// captured. Within a stream callback the driver rejects launches, so no gate is needed there (CUDA driver
// API, cuLaunchHostFunc). While the program exits, its waits take at most 1 s in total.
#pragma once

#include "guest/launch/busy_time.h"

namespace carve::guest {

inline constexpr uint64_t heartbeat_stale_ns = 200'000'000;
inline constexpr uint32_t launches_per_deadline_check = 16;

// The windows in which a slice may launch without an agent, in CLOCK_MONOTONIC ns. `period` is 0 if there are
// none.
struct Timetable {
  uint64_t period, offset, length;

  // Returns the time since the last window began. Requires `period` to be above 0.
  constexpr uint64_t phase(uint64_t now) const { return (now % period + period - offset % period) % period; }
  // Returns the time until the next window begins; 0 within a window, or if `period` is 0.
  constexpr uint64_t until_window(uint64_t now) const {
    return period == 0 || phase(now) < length ? 0 : period - phase(now);
  }
};
// Decides whether a launch may proceed at `now`. All times are CLOCK_MONOTONIC ns. The function is pure.
constexpr bool may_launch(shm::LeaseWord word, uint64_t deadline, uint64_t now, uint64_t heartbeat,
                          Timetable table) {
  if (word.gate() == shm::GateState::open) return true;
  if (word.gate() == shm::GateState::lease && (deadline == 0 || now <= deadline)) return true;
  if (now <= heartbeat || now - heartbeat <= heartbeat_stale_ns) return false;
  return table.until_window(now) == 0;
}

// The time until a launch reaches the device, including the wake-up of its thread: 190 us on an H100.
inline constexpr uint64_t launch_lead_ns = 300'000;

// Returns the time until the thread's only fenced work is about to end. A launch then keeps the device busy,
// even if the limit is smaller than two kernels. Without an estimate the work is never considered about to
// end. The function is pure.
inline uint64_t until_nearly_done(const ThreadLaunchState& l, uint64_t now) {
  if (l.fence_count != 1 || l.unfenced != 0 || l.fence[0].guess) return UINT64_MAX;
  const uint64_t end = std::max(l.first_since, l.fence[0].inserted_at) + l.fence[0].ns;
  return end > now + launch_lead_ns ? end - launch_lead_ns - now : 0;
}

// Counts a launch that needs no further check. Returns false if the launch must take the slow path.
inline bool count_fast_launch(ThreadLaunchState& l, uint64_t key, uint64_t stream) {
  Estimate& e = estimate_at(l, key);
  StreamEntry& entry = stream_entry_at(l, stream);
  const uint64_t pending = entry.pending + e.ns, unfenced = l.unfenced + e.ns;
  if (e.key != key || entry.name != stream + 1 || pending >= l.fence_interval_ns || unfenced >= l.credit ||
      --l.launches_until_check == 0) [[unlikely]]
    return false;
  record_use(l, e);
  entry.pending = pending;
  l.unfenced = unfenced;
  l.submitted += e.ns;
  l.line->submitted.store(l.submitted, std::memory_order_relaxed);
  l.line->unfenced.store(unfenced, std::memory_order_relaxed);
  return true;
}

// Returns whether no device of the slice is arbitrated. Most launches check only this.
inline bool is_not_arbitrated() {
  const uint32_t count = gates.count.load(std::memory_order_acquire);
  const shm::ControlDevice* device = gates.first.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i)
    if (shm::LeaseWord{device[i].lease.load(std::memory_order_acquire)}.gate() != shm::GateState::open)
      return false;
  return true;
}

// Returns whether a launch may proceed without further checks, and counts the launch.
__attribute__((always_inline)) inline bool try_fast_launch(const Launch& launch) {
  ThreadLaunchState* l = this_thread_state();
  if (l == nullptr || l->moved) return false;
  const shm::ControlDevice& device = gates.first.load(std::memory_order_relaxed)[l->device];
  const shm::LeaseWord word{device.lease.load(std::memory_order_acquire)};
  return word.value == l->word ? count_fast_launch(*l, launch.key(), launch.stream)
                               : word.gate() == shm::GateState::open;
}

// The part of a slow launch that remains to be done after the driver has returned.
struct Ticket {
  Process* process = nullptr;
  ThreadLaunchState* state = nullptr;
  StreamEntry* entry = nullptr;
  uint64_t ns = 0;
  bool fence = false;
};

// Waits as long as the gate and the in-flight limit require, then counts the launch.
Ticket begin_slow_launch(const Launch& launch);
void end_slow_launch(const Ticket& ticket, CUresult result);

// Waits as begin_slow_launch() does, calls `call()`, the driver's entry point, and finishes the launch.
template <class Call>
CUresult paced_by_waiting(const Launch& launch, Call call) {
  const Ticket ticket = begin_slow_launch(launch);
  const CUresult result = call();
  if (ticket.state != nullptr) end_slow_launch(ticket, result);
  return result;
}

}  // namespace carve::guest
