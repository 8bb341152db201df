// Plans which slices of a fleet to move, and where, so that `wanted` more devices become empty, for example
// to switch them off, to grant exclusive slices, or to repair them. To keep the number of moves small, each
// step picks the device that is cheapest to empty now (fewest slices, then least memory) and empties it
// completely or not at all. The engine's strategy chooses the new device of a slice, but never one that is to
// be emptied.
//
// A slice on several devices moves to several devices. If such moves would empty further devices, all of them
// are emptied together if there is room. The plan contains its gain and its cost. It only proposes moves, and
// no slice is moved twice. Finding the fewest moves is a bin packing problem, so the algorithm is greedy.
// Emptying a device takes one placement decision per slice.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "place/migration.h"

namespace carve::place {

struct Move {
  size_t who = 0;  // Index in `standing`.
  Assignment from;
  Assignment to;
};

// Returns the pairs of old and new devices of a move, as positions on their nodes. Devices that the slice
// keeps are left out.
std::vector<std::pair<unsigned, unsigned>> exchanged(const Move&);

struct ConsolidationPlan {
  struct Emptied {
    uint32_t node;
    unsigned device;
    friend bool operator==(const Emptied&, const Emptied&) = default;
  };
  std::vector<Move> moves;       // Ordered such that each move fits when it is made.
  std::vector<Emptied> emptied;  // The gain of the plan.
  Bytes moved;                   // The cost: device memory to copy (bytes),
  uint64_t moved_share = 0;      // and compute in basis points.
};

// Empties at least `wanted` devices that have slices now, or as many as possible. Slices with whole devices
// are not moved, because moving one fills as many devices as it empties. The engine is unchanged afterwards.
ConsolidationPlan plan_consolidation(Engine&, std::span<const PlacedRequest> standing, unsigned wanted);

}  // namespace carve::place
