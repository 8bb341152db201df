// The gate in front of launches. The agent opens and closes it, per device, by one word in Control; the
// launch path reads that word and makes no call: about 1 ns while it is open. Until compute is enforced every
// gate is open, and the way through a closed one is here already: wait until it opens, or, where the agent
// has been silent for 200 ms, follow what it left for that case: the device's timetable, or, without one, go.
#pragma once

#include <cstdint>

#include "tenant/quota/process.h"

namespace carve::tenant {

inline constexpr uint64_t heartbeat_stale_ns = 200'000'000;

// Whether a launch may go at `now`, all times CLOCK_MONOTONIC ns. Pure.
constexpr bool may_launch(bool open, uint64_t now, uint64_t heartbeat, uint64_t period, uint64_t offset,
                          uint64_t length) {
  if (open) return true;
  if (now <= heartbeat || now - heartbeat <= heartbeat_stale_ns) return false;
  return period == 0 || (now % period + period - offset % period) % period < length;
}

inline bool is_open(const shm::ControlDevice& device) {
  return device.gate.load(std::memory_order_relaxed) == static_cast<uint64_t>(shm::Gate::open);
}

// Nearly every tenant has one device; one with more goes straight on only if all its gates are open, which
// spares asking the driver which device this launch means.
inline bool gates_open() {
  const uint32_t count = gates.count.load(std::memory_order_acquire);
  const shm::ControlDevice* first = gates.first.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i)
    if (!is_open(first[i])) return false;
  return true;
}

// Waits for the gate of the calling thread's device.
void wait_at_gate();

}  // namespace carve::tenant
