// A client's entitlement on one device, and the constants of arbitration with their reasons.
//
// All times are integer nanoseconds, of CLOCK_MONOTONIC or of a simulation's clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/commitment.h"
#include "core/invariant.h"
#include "core/slice.h"

namespace carve::share {

using Ns = int64_t;
inline constexpr Ns us = 1'000, ms = 1'000'000, second = 1'000'000'000;
inline constexpr Ns never = std::numeric_limits<Ns>::max();

inline constexpr unsigned max_clients = 64;  // Per device; a device has at most this many contexts.

// A slice of several devices gets its leases on all of them at the same time, because its ranks wait for each
// other. One device leads and schedules the slice by its own rules; the others follow.
enum class Gang : uint8_t { none, leads, follows };

struct Entitlement {
  Policy policy = Policy::fixed_share;
  LatencyClass latency = LatencyClass::batch;
  Share share;  // 0 means no share; the client is then a burst client.
  Gang gang = Gang::none;
  // Only for a client without a share. If true, the client has the small weight `best_effort_weight`.
  // Otherwise it has the mean weight of the clients with a share, so that all clients without one weigh the
  // same.
  bool best_effort = false;

  friend bool operator==(const Entitlement&, const Entitlement&) = default;
};

// The weight of a best-effort client among clients with a share. It gets the time that they leave, and 1 % of
// a contended round.
inline constexpr Share best_effort_weight{100};
// The weight of a client without a share if no client of the device has one.
inline constexpr Share equal_weight{1000};

struct Tuning {
  Ns switch_cost =
      assumed_switch_ns;  // Cost of a switch between contexts (40 to 110 us on devices of 2018 to 2024).

  // Length of a lease among batch clients. Each lease costs one switch, which is 2 % of it. Two saturating
  // clients still gain over the hardware's own time slices of 2 ms. Longer leases would gain little and would
  // make the other clients wait longer.
  constexpr Ns quantum() const {
    invariant(switch_cost >= 0);
    return static_cast<Ns>(quantum_ns(static_cast<uint64_t>(switch_cost)));
  }

  // Time in which each client that wants the device gets one lease. With many clients, leases are shorter.
  Ns round = 40 * ms;

  // Entitlement that a fixed-share client may save. In a window of length T the client can exceed its share
  // by depth / T.
  constexpr Ns depth() const { return std::min(20 * ms, 2 * quantum()); }

  // Depth of a latency client's bucket. Enough tokens must be saved when a request arrives. With a share of
  // 30 % and a Poisson demand of 25 %, the 99th percentile of the response time is 12.5 times the service
  // time at a depth of 2 ms, 5.9 times at 30 ms and 1.06 times at 100 ms.
  Ns latency_depth = 150 * ms;

  // If the lease holder has had nothing in flight for this time and another client waits, the lease ends. A
  // switch away and back costs twice this time, so a shorter pause is cheaper to wait for.
  constexpr Ns idle_gap() const { return switch_cost; }

  // A lease holder with tokens may pause for this long if only burst clients wait. If it lost its lease, they
  // would have the device for a quantum, and it would not get its share. The holder pays for the pause. It
  // loses its lease earlier if its pauses are longer than `rest_for_work` times its work under the lease, or
  // if its last pause was long.
  Ns max_held_pause = 1500 * us;
  static constexpr int rest_for_work = 2;

  // Time that a thread has to wake up after its gate opened before the client counts as idle.
  Ns wake = 400 * us;

  // A client is woken before its gate opens by twice the wake latency of the machine, because the program
  // wakes up as late as the arbiter does, and the arbiter needs some time to wake it.
  Ns min_gate_lead = 40 * us, max_gate_lead = 300 * us;

  // If a fixed-share client is the only one, its leases are shortened if its pauses would otherwise be longer
  // than this, but not below `min_quantum_alone`. In each pause the device runs out of work, and the program
  // must then get ahead of it again.
  Ns max_pause_alone = 20 * ms, min_quantum_alone = 2 * ms;

  // Work that a batch client may have in flight. The next client waits for this work.
  Ns in_flight_limit = 1 * ms;
  Ns min_in_flight_limit = 100 * us;
  // The same limit for a client that is alone on its device. A driver accepts about a thousand launches
  // ahead. With kernels of 5 ms, the next client would otherwise wait five seconds.
  Ns in_flight_limit_alone = 50 * ms;

  // A drain may take twice as long as the longest known kernel. After that the next gate opens; the hardware
  // interleaves the two clients, and each is charged its part. Among batch clients it is worth waiting for a
  // kernel of 50 ms: interleaved, the kernel would take just as long, plus the switches, and the shares would
  // be inexact.
  Ns min_drain = 2 * ms, max_drain = 100 * ms, max_drain_urgent = 4 * ms;

  // Estimated work between two fences: short enough to see the end of the work, long enough to cost little.
  Ns fence_interval = 200 * us, fence_interval_alone = 1 * ms;

  // Time from now to the deadline of a renewed lease. A lease that the agent does not renew ends at its
  // deadline.
  Ns lease_margin = 250 * ms;
};

}  // namespace carve::share
