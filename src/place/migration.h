// Finds one placed slice whose move makes room for a request that fits nowhere. The result is a proposal with
// its cost; no slice is moved. Each placed slice is tried once, which takes about 10 us for each slice on a
// node that the request could use. Both the slice and the request go where the engine would place them at
// that time, with replicas kept apart and guards observed.
#pragma once

#include <span>

#include "place/engine.h"

namespace carve::place {

struct PlacedRequest {
  RequestClass request_class = 0;
  Assignment assignment;
  Application application = no_application;
};

struct Migration {
  size_t who = 0;   // Index in `standing`.
  Assignment to;    // The slice's new position,
  Assignment room;  // and the request's position after the move.
  Bytes moved;      // The cost: device memory to copy (bytes).
  Share moved_share;
};

// Returns the cheapest move (least memory, then least compute, then the first) that makes room for the
// request. Returns no value if no single move does, or if the request fits already. The engine is unchanged
// afterwards.
std::optional<Migration> propose_migration(Engine&, RequestClass wanted,
                                           std::span<const PlacedRequest> standing,
                                           Application = no_application);

}  // namespace carve::place
