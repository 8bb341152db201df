// Writes a lease of the device scheduler into the slice's control page, where its launches read it
// (wire/shm/work.h, LeaseWord). The caller wakes the threads at the gate. Has no effects except the stores.
#pragma once

#include <algorithm>

#include "share/device_scheduler.h"
#include "wire/shm/layout.h"

namespace carve::node {

// `threads` is the largest number of launching threads in one process. `number` changes when the gate opens
// or closes.
inline void write_lease(shm::ControlDevice& control, const share::Lease& lease, const share::Tuning& tuning,
                        unsigned threads, uint32_t number) {
  // The in-flight limit applies to the process, but each thread counts only its own work. Processes have
  // separate contexts, which the device runs in turn, and a process without work in its turn costs a switch.
  const share::Ns limit = std::max<share::Ns>(lease.in_flight_limit / std::max(1u, threads), 50 * share::us);
  control.fence_interval_ns.store(
      static_cast<uint32_t>(lease.uncontended ? tuning.fence_interval_alone : tuning.fence_interval),
      std::memory_order_relaxed);
  control.lease_deadline.store(static_cast<uint64_t>(lease.deadline), std::memory_order_relaxed);
  const auto gate = lease.open ? shm::GateState::lease : shm::GateState::closed;
  control.lease.store(
      shm::LeaseWord::of(gate, lease.open ? static_cast<uint64_t>(limit) : 0, lease.notify_on_idle, number,
                         lease.uncontended, lease.draining, lease.imminent)
          .value,
      std::memory_order_seq_cst);
}

}  // namespace carve::node
