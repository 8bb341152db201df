// A plan for a whole fleet: which slices would have to move, and where, so that `wanted` more devices stand
// empty (to be switched off, handed to somebody who wants whole devices, or repaired). Few moves: the device
// that is cheapest to empty as things stand (fewest slices, then least held) is next, as a whole or not at
// all, and a slice goes where the engine's own policy puts it, but never to a device that is to stand empty.
// A slice of several devices goes on several devices; where others would stand empty too once these slices
// have left, all of them are emptied together, if there is room for that. A plan with its gain and its cost;
// nothing is done here, and nobody moves unasked, nor twice. Choosing an exact minimum is bin packing; this
// is greedy, and an emptied device costs one decision for each of its slices.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "place/migration.h"

namespace carve::place {

struct Move {
  size_t who = 0;  // Position in `standing`.
  Assignment from;
  Assignment to;
};

// The devices that are exchanged, as positions on their nodes: of several, those it keeps are not told.
std::vector<std::pair<unsigned, unsigned>> exchanged(const Move&);

struct ConsolidationPlan {
  struct Emptied {
    uint32_t node;
    unsigned device;
    friend bool operator==(const Emptied&, const Emptied&) = default;
  };
  std::vector<Move> moves;       // In an order in which each has room when it is made.
  std::vector<Emptied> emptied;  // The gain.
  Bytes moved;                   // Device memory that has to be carried over: the cost,
  uint64_t moved_share = 0;      // and the compute, in basis points.
};

// Empties at least `wanted` devices that hold somebody now; fewer where no more can be. Whoever has devices
// wholly is not moved: to move a whole device empties nothing. The engine is as it was afterwards.
ConsolidationPlan plan_consolidation(Engine&, std::span<const PlacedRequest> standing, unsigned wanted);

}  // namespace carve::place
