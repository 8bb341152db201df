// What people may see of a device's arbitration: what was granted, what was had, who waited. Values, copied
// out of the arbiter's thread.
#pragma once

#include <cstdint>
#include <vector>

namespace carve::node {

// Shares are basis points of the device over the window that the name says; times are ns since the slice
// began.
struct SliceCompute {
  uint64_t slice = 0;     // The ledger's id.
  uint64_t as_of_ns = 0;  // CLOCK_MONOTONIC, of all that follows.
  uint32_t granted_bp = 0;
  uint32_t achieved_1s_bp = 0;  // Charged: its work and the switches into it.
  uint32_t achieved_60s_bp = 0;
  uint64_t busy_ns = 0;       // Charged, ever.
  uint64_t waiting_ns = 0;    // It had work and somebody else had the lease.
  uint64_t throttled_ns = 0;  // It had work and its own share did not let it, though the device was free.
  uint64_t burst_ns = 0;      // Charged beyond its share.
  uint64_t waits = 0;         // Times that it stood at the gate.
  uint64_t wait_p50_ns = 0, wait_p99_ns = 0;  // Of the last thousand of these.
  uint64_t overruns = 0;                      // Its work did not end when it should have.
  uint64_t leases = 0;
  // Bytes that copies moved, as its processes say: to the device, to the host, inside it. They run beside
  // kernels and are not charged. Of the whole slice, shown with its first device.
  uint64_t copied[3] = {};
};

struct DeviceCompute {
  bool arbitrated = false;  // Somebody's share is enforced on it.
  uint32_t idle_1s_bp = 0;  // Of the last second, in which nothing ran.
  uint64_t switch_ns = 0;   // What a change of slices costs on it, as measured or assumed.
  uint64_t switches = 0;
  std::vector<SliceCompute> slices;
};

}  // namespace carve::node
