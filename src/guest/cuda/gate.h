// The gate in front of launches. The agent gives each slice leases per device by one word in Control
// (wire/shm/work.h, LeaseWord), and a launch reads that word: free, and it goes on at once, about 1 ns; under
// a lease it is counted too, some 5 ns: no clock, no lock, no call. Everything else is out of line (gate.cc):
//
// * Closed: tell the arbiter, spin for 50 us, sleep on the word. Where the agent has been silent for 200 ms
//   the device's timetable decides, and without one everybody goes.
// * A lease that ran out is a closed gate. Its end is looked at with every 16th launch and every marker.
// * At most the lease's bound of estimated work is in flight per thread; whoever has more waits for its own
//   work to complete. One launch always goes. Work that does not move for 10 ms may be waiting for a launch
//   to come: then one more goes, later twice as many each time.
//
// Only the launching thread waits, with no lock of ours held, not while its stream is captured. Within a
// callback of the stream the driver refuses launches, so there is nothing to hold (CUDA driver API,
// cuLaunchHostFunc). When the program ends it waits for 1 s at most, in all.
#pragma once

#include "guest/cuda/busy_time.h"

namespace carve::guest {

inline constexpr uint64_t heartbeat_stale_ns = 200'000'000;
inline constexpr uint32_t launches_per_deadline_check = 16;

// Whether a launch may go at `now`, all times CLOCK_MONOTONIC ns. Pure.
struct Timetable {
  uint64_t period, offset, length;

  // How long ago the last window began. Only where there is a period.
  constexpr uint64_t phase(uint64_t now) const { return (now % period + period - offset % period) % period; }
  // Until the next one begins; 0 within one, and where there is none.
  constexpr uint64_t until_window(uint64_t now) const {
    return period == 0 || phase(now) < length ? 0 : period - phase(now);
  }
};
constexpr bool may_launch(shm::LeaseWord word, uint64_t deadline, uint64_t now, uint64_t heartbeat,
                          Timetable table) {
  if (word.gate() == shm::GateState::open) return true;
  if (word.gate() == shm::GateState::lease && (deadline == 0 || now <= deadline)) return true;
  if (now <= heartbeat || now - heartbeat <= heartbeat_stale_ns) return false;
  return table.until_window(now) == 0;
}

// Counts a launch that may pass without another look.
inline bool count_fast_launch(ThreadLaunchState& l, uint64_t key, uint64_t stream) {
  Estimate& e = estimate_at(l, key);
  StreamEntry& entry = stream_entry_at(l, stream);
  const uint64_t pending = entry.pending + e.ns, unfenced = l.unfenced + e.ns;
  if (e.key != key || entry.name != stream + 1 || pending >= l.fence_interval_ns || unfenced >= l.credit ||
      --l.launches_until_deadline_check == 0) [[unlikely]]
    return false;
  record_use(l, e);
  entry.pending = pending;
  l.unfenced = unfenced;
  l.submitted += e.ns;
  l.line->submitted.store(l.submitted, std::memory_order_relaxed);
  l.line->unfenced.store(unfenced, std::memory_order_relaxed);
  return true;
}

// Whether nothing governs any device of the slice: all that most launches ask.
inline bool is_not_arbitrated() {
  const uint32_t count = gates.count.load(std::memory_order_acquire);
  const shm::ControlDevice* device = gates.first.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i)
    if (shm::LeaseWord{device[i].lease.load(std::memory_order_acquire)}.gate() != shm::GateState::open)
      return false;
  return true;
}

// Whether a launch may go without another look; counts it.
__attribute__((always_inline)) inline bool try_fast_launch(const Launch& launch) {
  ThreadLaunchState* l = this_thread_state();
  if (l == nullptr || l->moved) return false;
  const shm::ControlDevice& device = gates.first.load(std::memory_order_relaxed)[l->device];
  const shm::LeaseWord word{device.lease.load(std::memory_order_acquire)};
  return word.value == l->word ? count_fast_launch(*l, launch.key(), launch.stream)
                               : word.gate() == shm::GateState::open;
}

// What a launch that did not go straight on still has to do when the driver has answered.
struct Ticket {
  Process* process = nullptr;
  ThreadLaunchState* state = nullptr;
  StreamEntry* entry = nullptr;
  uint64_t ns = 0;
  bool fence = false;
};

// Waits for whatever there is to wait for, and counts.
Ticket begin_slow_launch(const Launch& launch);
void end_slow_launch(const Ticket& ticket, CUresult result);

// `call()` is the driver's, of something that takes time on the device.
template <class Call>
CUresult paced_by_waiting(const Launch& launch, Call call) {
  const Ticket ticket = begin_slow_launch(launch);
  const CUresult result = call();
  if (ticket.state != nullptr) end_slow_launch(ticket, result);
  return result;
}

}  // namespace carve::guest
