// Estimates how long a launch will take. Programs repeat their launches, so each thread keeps its
// measurements by function, grid and block (or by executable graph, or by kind and size of a copy). The table
// has 2,048 entries, 48 KiB, and a new entry replaces the older of two. No charge depends on an estimate.
// Estimates only place the next fence and limit the work in flight.
//
// Only sums are measured. Over an interval in which the device was busy with this thread's work, the measured
// time is divided by the estimated time. This ratio corrects each launch that took part: a guess in full, a
// measured value by a quarter. If one launch is overestimated and another is underestimated, only their sum
// becomes right, which is sufficient. The functions are pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "guest/process/launch_state.h"

namespace carve::guest {

inline constexpr uint64_t min_launch_ns = 500, max_launch_ns = 60'000'000'000;

// A launch, which key() hashes into a key that is never 0. This takes three multiplications (2 ns).
struct Launch {
  uint64_t what = 0;
  uint64_t grid_xy = 0, grid_z = 0, block = 0;
  uint64_t stream = 0;

  constexpr uint64_t key() const {
    uint64_t k = (what ^ grid_xy) * 0x9e37'79b9'7f4a'7c15;
    k = (k ^ k >> 32 ^ grid_z << 40 ^ block) * 0xbf58'476d'1ce4'e5b9;
    return (k ^ k >> 29) | 1;
  }
};

// Returns the entry of `key`, or another key's entry if there is none.
inline Estimate& estimate_at(ThreadLaunchState& l, uint64_t key) {
  static_assert(estimates_ways == 2);
  Estimate* set = l.estimate[key >> (64 - estimates_bits)];
  return set[set->key != key];
}

// Returns the entry of `key`. A new entry begins with the guess.
inline Estimate& entry_of(ThreadLaunchState& l, uint64_t key, uint64_t guess) {
  Estimate& found = estimate_at(l, key);
  if (found.key == key) return found;
  Estimate* set = l.estimate[key >> (64 - estimates_bits)];
  const bool second = set[0].key != 0 && static_cast<int32_t>(set[1].batch - set[0].batch) <= 0;
  // The number is that of a batch long past, so no fence in flight updates this entry.
  set[second] = {key, guess, l.batch - (1u << 30), 0};
  return set[second];
}

// Returns the entry of a launch. If the function was measured with another grid or block, that value is the
// estimate. Without this rule, a program whose shapes differ with each request would have no estimate for
// most launches.
inline Estimate& estimate_of(ThreadLaunchState& l, const Launch& launch, uint64_t guess) {
  const uint64_t key = launch.key(), of_any_shape = Launch{launch.what}.key();
  const bool known = estimate_at(l, key).key == key;
  if (!known) {
    const Estimate any = estimate_at(l, of_any_shape);
    Estimate& fresh = entry_of(l, key, guess);
    if (any.key == of_any_shape && any.measured != 0) {
      fresh.ns = any.ns;
      fresh.measured = 1;
    }
    return fresh;
  }
  Estimate& found = estimate_at(l, key);
  if (found.measured != 0 && of_any_shape != key) {
    const Estimate copy = found;
    Estimate& any = entry_of(l, of_any_shape, copy.ns);
    any.ns = any.measured != 0 ? (3 * any.ns + copy.ns) / 4 : copy.ns;
    any.measured = 1;
  }
  return entry_of(l, key, guess);  // The other entry may have replaced it.
}

constexpr uint64_t corrected(uint64_t ns, bool measured, uint64_t took, uint64_t estimated) {
  if (estimated == 0) return ns;
  using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(ns) * took / estimated;
  // Corrects a measured value by a quarter, and limits the measured ratio to a factor of 8.
  if (measured) product = (3 * Wide{ns} + std::clamp(product, Wide{ns / 8}, Wide{ns} * 8)) / 4;
  return std::clamp(product > max_launch_ns ? max_launch_ns : static_cast<uint64_t>(product), min_launch_ns,
                    max_launch_ns);
}

// Records that the entry takes part in the current batch.
inline void record_use(ThreadLaunchState& l, Estimate& e) {
  if (e.batch == l.batch) [[likely]]
    return;
  e.batch = l.batch;
  l.estimate_use[l.estimate_uses++ % max_estimate_uses] = {l.batch,
                                                           static_cast<uint32_t>(&e - l.estimate[0])};
}

// Corrects the entries used in the batches from `first` on, which were estimated at `estimated` ns and took
// `took` ns. If `outright` is set, measured values are corrected fully too. Returns the longest known launch.
// The cost grows with the number of entries used, up to 64. Beyond that the whole table is scanned (2 us). It
// is also scanned every 64th time, to drop a maximum that is no longer valid.
inline uint64_t update_estimates(ThreadLaunchState& l, uint32_t first, uint64_t took, uint64_t estimated,
                                 bool outright = false) {
  const auto is_part = [=](uint32_t batch) { return static_cast<int32_t>(batch - first) >= 0; };
  const auto update = [&](Estimate& e) {
    e.ns = corrected(e.ns, e.measured != 0 && !outright, took, estimated);
    e.measured = 1;
    l.longest = std::max(l.longest, e.ns);
  };
  const std::span all(l.estimate[0], sizeof l.estimate / sizeof(Estimate));
  const bool overrun = l.estimate_uses >= max_estimate_uses &&
                       is_part(l.estimate_use[l.estimate_uses % max_estimate_uses].batch);
  if (overrun || ++l.updates % 64 == 0) {
    l.longest = 0;
    for (Estimate& e : all) {
      if (e.key != 0 && is_part(e.batch)) update(e);
      if (e.measured != 0) l.longest = std::max(l.longest, e.ns);
    }
  } else {
    for (uint32_t i = 0; i < std::min(l.estimate_uses, max_estimate_uses); ++i) {
      const EstimateUse t = l.estimate_use[(l.estimate_uses - 1 - i) % max_estimate_uses];
      if (!is_part(t.batch)) break;
      // An entry that was used again later has already been corrected. A replaced entry belongs to another
      // launch.
      if (all[t.estimate].batch == t.batch) update(all[t.estimate]);
    }
  }
  return l.longest;
}

}  // namespace carve::guest
