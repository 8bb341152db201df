// How long a launch will take. Nobody can know before; but programs repeat themselves, so each thread keeps
// what it learned by function, grid and block (or executable graph, or kind and size of a copy) in a table of
// 512 places, 12 KiB, where the newcomer throws out the older of two. Nothing that is charged rests on an
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

#include "tenant/quota/launching.h"

namespace carve::tenant {

inline constexpr uint64_t shortest_launch_ns = 500, longest_launch_ns = 60'000'000'000;

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
inline Estimate& estimate_at(Launching& l, uint64_t key) {
  static_assert(estimates_ways == 2);
  Estimate* set = l.estimate[key >> (64 - estimates_bits)];
  return set[set->key != key];
}

// The entry of `key`, made with a guess where there was none.
inline Estimate& estimate_of(Launching& l, uint64_t key, uint64_t guess) {
  Estimate& found = estimate_at(l, key);
  if (found.key == key) return found;
  Estimate* set = l.estimate[key >> (64 - estimates_bits)];
  const bool second = set[0].key != 0 && static_cast<int32_t>(set[1].batch - set[0].batch) <= 0;
  // As if of a batch long ago: nothing that is under way teaches about it.
  set[second] = {key, guess, l.batch - (1u << 30), 0};
  return set[second];
}

constexpr uint64_t corrected(uint64_t ns, bool learned, uint64_t took, uint64_t estimated) {
  if (estimated == 0) return ns;
  // The ratio in 1/1024; a learned one is trusted within a factor of 8.
  uint64_t ratio = static_cast<uint64_t>(static_cast<unsigned __int128>(took) * 1024 / estimated);
  if (learned) ratio = (3 * 1024 + std::clamp<uint64_t>(ratio, 128, 8192)) / 4;
  const auto product = static_cast<unsigned __int128>(ns) * ratio / 1024;
  return std::clamp(product > longest_launch_ns ? longest_launch_ns : static_cast<uint64_t>(product),
                    shortest_launch_ns, longest_launch_ns);
}

// What was part of a batch from `first` on was estimated to take `estimated` ns and took `took`. Returns the
// longest launch known now.
inline uint64_t learn(Launching& l, uint32_t first, uint64_t took, uint64_t estimated) {
  uint64_t longest = 0;
  for (Estimate& e : std::span(l.estimate[0], sizeof l.estimate / sizeof(Estimate))) {
    if (e.key == 0) continue;
    if (static_cast<int32_t>(e.batch - first) >= 0) {
      e.ns = corrected(e.ns, e.learned != 0, took, estimated);
      e.learned = 1;
    }
    if (e.learned != 0) longest = std::max(longest, e.ns);
  }
  return longest;
}

}  // namespace carve::tenant
