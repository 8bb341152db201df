// A plan for a whole fleet: which tenants would have to move, and where, so that `wanted` more cards stand
// empty (to be switched off, handed to somebody who wants whole cards, or repaired). Few moves: the cards
// that are cheapest to empty (fewest tenants, then least held) are emptied one by one, each as a whole or not
// at all, and a tenant goes where the engine's own policy puts it, but never to a card that is to stand
// empty. A plan with its gain and its cost; nothing is done here, and nobody moves unasked. Choosing an exact
// minimum is bin packing; this is greedy, and an emptied card costs one look at all cards.
#pragma once

#include <span>
#include <vector>

#include "place/repair.h"

namespace carve::place {

struct Move {
  size_t who = 0;  // Position in `standing`.
  Spot from;
  Spot to;
};

struct Repack {
  std::vector<Move> moves;   // In an order in which each has room when it is made.
  unsigned emptied = 0;      // Cards: the gain.
  Bytes moved;               // Device memory that has to be carried over: the cost,
  uint64_t moved_share = 0;  // and the compute, in basis points.
};

// Empties up to `wanted` cards that hold somebody now; fewer where no more can be. Only tenants of one card
// that is not theirs alone are moved: to move a whole card empties nothing. The engine is as it was
// afterwards.
Repack repack(Engine&, std::span<const Standing> standing, unsigned wanted);

}  // namespace carve::place
