// The figures of a device's arbitration, for display: granted, achieved, waited. Values, copied out of the
// arbiter's thread.
#pragma once

#include <cstdint>
#include <vector>

namespace carve::node {

// Shares are basis points of the device over the window in the name. Times are ns since the slice began.
struct SliceCompute {
  uint64_t slice = 0;     // The ledger's id.
  uint64_t as_of_ns = 0;  // CLOCK_MONOTONIC, for all fields below.
  uint32_t granted_bp = 0;
  uint32_t achieved_1s_bp = 0;  // Charged time: the slice's work and the switches to it.
  uint32_t achieved_60s_bp = 0;
  uint64_t busy_ns = 0;       // Total charged time.
  uint64_t waiting_ns = 0;    // Contended: it had work and another slice held the lease.
  uint64_t throttled_ns = 0;  // It had work, the device was free, and its own share was used up.
  uint64_t burst_ns = 0;      // Charged time beyond its share.
  uint64_t waits = 0;         // Number of waits at the launch gate.
  uint64_t wait_p50_ns = 0, wait_p99_ns = 0;  // Of the last 1,000 waits.
  uint64_t overruns = 0;                      // Drains that reached their time limit.
  uint64_t leases = 0;
  // Bytes of copies, as the processes report them: to the device, to the host, on the device. Copies run
  // beside kernels and are not charged. The sums are those of the whole slice and are shown with its first
  // device.
  uint64_t copied[3] = {};
};

struct DeviceCompute {
  bool arbitrated = false;  // A share on it is enforced.
  uint32_t idle_1s_bp = 0;  // Idle part of the last second.
  uint64_t switch_ns = 0;   // Cost of one switch, measured or assumed.
  uint64_t switches = 0;
  std::vector<SliceCompute> slices;
};

}  // namespace carve::node
