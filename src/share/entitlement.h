// What a client is entitled to on one device, and the constants of arbitration, each with its reason.
//
// All times are integer nanoseconds: instants of CLOCK_MONOTONIC, or of a simulation's clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/commitment.h"
#include "core/slice.h"

namespace carve::share {

using Ns = int64_t;
inline constexpr Ns us = 1'000, ms = 1'000'000, second = 1'000'000'000;
inline constexpr Ns never = std::numeric_limits<Ns>::max();

inline constexpr unsigned max_clients = 64;  // Of one device: as many as it can have contexts.

// A client of several devices gets its leases on all of them in the same windows, since its ranks wait for
// each other: one device leads, by its own rules, the others follow.
enum class Gang : uint8_t { none, leads, follows };

struct Entitlement {
  Policy policy = Policy::fixed_share;
  LatencyClass latency = LatencyClass::batch;
  Share share;  // 0: none was asked for; then it is a burst client of weight `best_effort_weight`.
  Gang gang = Gang::none;

  friend bool operator==(const Entitlement&, const Entitlement&) = default;
};

// The weight of a client without a share, beside clients with one.
inline constexpr Share best_effort_weight{100};

struct Tuning {
  Ns switch_cost =
      assumed_switch_ns;  // From one context to another (40 to 110 us on devices of 2018 to 2024).

  // A lease among batch clients. Each costs a switch: at 2 % of the lease that is 2 %, and two saturating
  // clients still gain over the hardware's own slices of 2 ms. Longer ones would gain little more and make
  // everybody wait.
  constexpr Ns quantum() const { return static_cast<Ns>(quantum_ns(static_cast<uint64_t>(switch_cost))); }

  // All who want the device have had a turn after this time: with many of them turns are shorter.
  Ns round = 40 * ms;

  // How much entitlement a fixed-share client may save up, and so how far above its share it can be in a
  // window of T: depth / T.
  constexpr Ns depth() const { return std::min(20 * ms, 2 * quantum()); }

  // A request of a latency client must find its bucket full enough: with 30 % and a Poisson demand of 25 %
  // the 99th percentile is 12.5 times the service at a depth of 2 ms, 5.9 at 30 ms, 1.06 at 100 ms.
  Ns latency_depth = 150 * ms;

  // Nothing in flight for so long, and somebody waiting: the lease goes on. A switch away and back costs two
  // of these, so a shorter pause is cheaper to sit through.
  constexpr Ns idle_gap() const { return switch_cost; }

  // What a thread may take to wake up behind an opened gate before that counts as idle.
  Ns wake = 400 * us;

  // A fixed-share client that is alone runs in pieces of about this length, so that it is not away for long.
  Ns quantum_alone = 2 * ms;

  // What a batch client may have in flight: what the next one waits for.
  Ns in_flight_limit = 1 * ms;
  Ns min_in_flight_limit = 100 * us;
  // And alone: a driver takes a thousand launches ahead, which with kernels of 5 ms would be five seconds of
  // nobody's share for whoever comes next.
  Ns in_flight_limit_alone = 50 * ms;

  // A drain may take twice the longest kernel known; then the next gate opens anyway, the hardware
  // interleaves the two, and each is charged its part. Among batch clients it is worth waiting for a kernel
  // of 50 ms: it would take as long interleaved, plus the switches, and shares could not be told apart.
  Ns min_drain = 2 * ms, max_drain = 100 * ms, max_drain_urgent = 4 * ms;

  // Estimated work per marker: often enough to see the end, rarely enough not to be felt.
  Ns fence_interval = 200 * us, fence_interval_alone = 1 * ms;

  // A lease of the living is renewed; one that nobody renews ends by itself.
  Ns lease_margin = 250 * ms;
};

}  // namespace carve::share
