// How long a launch will take. Nobody can know before; but programs repeat themselves, so each thread keeps
// what it learned by function, grid and block (or executable graph, or kind and size of a copy) in a table of
// 2,048 places, 48 KiB, where the newcomer throws out the older of two. Nothing that is charged rests on an
// estimate: it says where to put the next marker and how much may be in flight.
//
// Learned is the sum: over some stretch of time in which the device was busy with this thread's work, what
// was estimated against how long it took, and everything that took part is corrected by that ratio, a guess
// in full, what was learned before by a quarter of it. Where one launch is estimated too long and another too
// short, only their sum comes out right, and more is not needed. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "guest/quota/launch_state.h"

namespace carve::guest {

inline constexpr uint64_t min_launch_ns = 500, max_launch_ns = 60'000'000'000;

// What is launched, folded into a key that is never 0. Three multiplications, 2 ns.
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

// The entry of `key`, if there is one; else another's.
inline Estimate& estimate_at(ThreadLaunchState& l, uint64_t key) {
  static_assert(estimates_ways == 2);
  Estimate* set = l.estimate[key >> (64 - estimates_bits)];
  return set[set->key != key];
}

// The entry of `key`, made with a guess where there was none.
inline Estimate& entry_of(ThreadLaunchState& l, uint64_t key, uint64_t guess) {
  Estimate& found = estimate_at(l, key);
  if (found.key == key) return found;
  Estimate* set = l.estimate[key >> (64 - estimates_bits)];
  const bool second = set[0].key != 0 && static_cast<int32_t>(set[1].batch - set[0].batch) <= 0;
  // As if of a batch long ago: nothing that is under way teaches about it.
  set[second] = {key, guess, l.batch - (1u << 30), 0};
  return set[second];
}

// What is known of a launch. A function that was learned in another shape counts as that: programs with a
// shape for each request would otherwise know nothing of most launches.
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
  return entry_of(l, key, guess);  // The other may have taken its place.
}

constexpr uint64_t corrected(uint64_t ns, bool measured, uint64_t took, uint64_t estimated) {
  if (estimated == 0) return ns;
  using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(ns) * took / estimated;
  // What was learned is corrected by a quarter, and by no more than a factor of 8 is believed.
  if (measured) product = (3 * Wide{ns} + std::clamp(product, Wide{ns / 8}, Wide{ns} * 8)) / 4;
  return std::clamp(product > max_launch_ns ? max_launch_ns : static_cast<uint64_t>(product), min_launch_ns,
                    max_launch_ns);
}

// Takes part in the batch that is being filled.
inline void record_use(ThreadLaunchState& l, Estimate& e) {
  if (e.batch == l.batch) [[likely]]
    return;
  e.batch = l.batch;
  l.estimate_use[l.estimate_uses++ % max_estimate_uses] = {l.batch,
                                                           static_cast<uint32_t>(&e - l.estimate[0])};
}

// What was part of a batch from `first` on was estimated to take `estimated` ns and took `took`; `outright`:
// what was learned before is known to be wrong. Returns the longest launch known now. Costs as much as took
// part, up to 64; of more the whole table is gone through, 2 us, as now and then to forget what was the
// longest once.
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
      // Touched again since, it was taught already; thrown out, it is another's.
      if (all[t.estimate].batch == t.batch) update(all[t.estimate]);
    }
  }
  return l.longest;
}

}  // namespace carve::guest
