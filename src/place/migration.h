// Finds one placed slice whose move makes room for a request that fits nowhere. The result is a proposal with
// its price; no slice is moved. Each placed slice is tried once: about 10 us for each on a node that the
// request could use. Both go where the engine itself would place them at that time, with replicas apart and
// guards observed.
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
  Assignment to;    // The slice's new place,
  Assignment room;  // and the request's place then.
  Bytes moved;      // The price: device memory to copy (bytes).
  Share moved_share;
};

// Returns the cheapest move (least memory, then least compute, then the first) that makes room for the
// request. Returns no value if no single move does, or if the request fits already. The engine is unchanged
// afterwards.
std::optional<Migration> propose_migration(Engine&, RequestClass wanted,
                                           std::span<const PlacedRequest> standing,
                                           Application = no_application);

}  // namespace carve::place
