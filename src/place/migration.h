// Room by moving somebody: when a request fits nowhere, which one standing slice could go elsewhere so
// that it does. A proposal with its price; nothing is done here, and nobody moves unasked. Tries each
// standing slice once: about 10 us for each that stands on a node which the request could use at all.
// Both go where the engine itself would put them at that moment, replicas apart and guards observed.
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
  size_t who = 0;   // Position in `standing`.
  Assignment to;    // Where it would go,
  Assignment room;  // and where the request would stand then.
  Bytes moved;      // Device memory that has to be carried over: the price.
  Share moved_share;
};

// The cheapest move (least memory, then least compute, then the first) that makes room for the request;
// nothing where no single move does, or where it fits as it is. The engine is as it was afterwards.
std::optional<Migration> propose_migration(Engine&, RequestClass wanted,
                                           std::span<const PlacedRequest> standing,
                                           Application = no_application);

}  // namespace carve::place
