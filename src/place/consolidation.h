// Plans which slices of a fleet to move, and where, so that `wanted` more devices become empty, for example
// to switch them off, to grant exclusive slices, or to repair them. To keep the number of moves small, each
// step picks the device that is cheapest to empty now (fewest slices, then least memory) and empties it
// completely or not at all. The engine's strategy chooses the new device of a slice, but never one that is to
// be emptied.
//
// A slice on several devices moves to several devices. If such moves would empty further devices, all of them
// are emptied together if there is room. The plan reports its gain and its cost. It only proposes moves, and
// moves no slice twice. Finding the fewest moves is a bin packing problem, so the algorithm is greedy: each
// emptied device costs one placement decision per slice.
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

// Returns the device pairs that a move exchanges, as positions on their nodes, without the devices that it
// keeps.
std::vector<std::pair<unsigned, unsigned>> exchanged(const Move&);

struct ConsolidationPlan {
  struct Emptied {
    uint32_t node;
    unsigned device;
    friend bool operator==(const Emptied&, const Emptied&) = default;
  };
  std::vector<Move> moves;       // Ordered so that each move has room.
  std::vector<Emptied> emptied;  // The gain.
  Bytes moved;                   // The cost: device memory to copy (bytes),
  uint64_t moved_share = 0;      // and compute in basis points.
};

// Empties at least `wanted` devices that hold slices now, or fewer if no more can be emptied. Slices with
// whole devices are not moved, because moving one only empties as many devices as it fills. The engine is
// unchanged afterwards.
ConsolidationPlan plan_consolidation(Engine&, std::span<const PlacedRequest> standing, unsigned wanted);

}  // namespace carve::place
