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

#include "guest/cuda/meter.h"

namespace carve::guest {

inline constexpr uint64_t heartbeat_stale_ns = 200'000'000;
inline constexpr uint32_t turns_per_look = 16;

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
  if (word.pass() == shm::Pass::free) return true;
  if (word.pass() == shm::Pass::lease && (deadline == 0 || now <= deadline)) return true;
  if (now <= heartbeat || now - heartbeat <= heartbeat_stale_ns) return false;
  return table.until_window(now) == 0;
}

// Counts a launch that may pass without another look.
inline bool passes(Launching& l, uint64_t key, uint64_t stream) {
  Estimate& e = estimate_at(l, key);
  Memo& memo = memo_at(l, stream);
  const uint64_t pending = memo.pending + e.ns, unmarked = l.unmarked + e.ns;
  if (e.key != key || memo.name != stream + 1 || pending >= l.batch_ns || unmarked >= l.room ||
      --l.turns == 0) [[unlikely]]
    return false;
  touch(l, e);
  memo.pending = pending;
  l.unmarked = unmarked;
  l.submitted += e.ns;
  l.line->submitted.store(l.submitted, std::memory_order_relaxed);
  l.line->unmarked.store(unmarked, std::memory_order_relaxed);
  return true;
}

// Whether nothing governs any device of the slice: all that most launches ask.
inline bool ungoverned() {
  const uint32_t count = gates.count.load(std::memory_order_acquire);
  const shm::ControlDevice* device = gates.first.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i)
    if (shm::LeaseWord{device[i].lease.load(std::memory_order_acquire)}.pass() != shm::Pass::free)
      return false;
  return true;
}

// Whether a launch may go without another look; counts it.
__attribute__((always_inline)) inline bool goes(const Launch& launch) {
  Launching* l = own();
  if (l == nullptr || l->moved) return false;
  const shm::ControlDevice& device = gates.first.load(std::memory_order_relaxed)[l->device];
  const shm::LeaseWord word{device.lease.load(std::memory_order_acquire)};
  return word.value == l->word ? passes(*l, launch.key(), launch.stream) : word.pass() == shm::Pass::free;
}

// What a launch that did not go straight on still has to do when the driver has answered.
struct Ticket {
  Process* process = nullptr;
  Launching* launching = nullptr;
  Memo* memo = nullptr;
  uint64_t ns = 0;
  bool mark = false;
};

// Waits for whatever there is to wait for, and counts.
Ticket pass_slowly(const Launch& launch);
void passed(const Ticket& ticket, CUresult result);

// `call()` is the driver's, of something that takes time on the device.
template <class Call>
CUresult paced_by_waiting(const Launch& launch, Call call) {
  const Ticket ticket = pass_slowly(launch);
  const CUresult result = call();
  if (ticket.launching != nullptr) passed(ticket, result);
  return result;
}

}  // namespace carve::guest
