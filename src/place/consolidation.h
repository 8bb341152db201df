// Plans for a whole fleet which slices to move, and where, so that `wanted` more devices become empty, for
// example to switch them off, to grant exclusive slices, or to repair them. The plan has few moves. The
// device that is cheapest to empty now is next (fewest slices, then least memory), and it is emptied
// completely or not at all. A slice goes where the engine's strategy puts it, but never to a device that is
// to be empty.
//
// A slice of several devices moves to several devices. If other devices also become empty when these slices
// have left, all of them are emptied together if there is room. The plan states its gain and its cost. No
// slice is moved, and the plan moves none twice. An exact minimum is a bin packing problem. This algorithm is
// greedy, and an emptied device costs one decision for each of its slices.
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
