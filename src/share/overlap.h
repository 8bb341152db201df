// Splits a time in which several clients had work on the device. Clients report their own work, so each part
// is limited to what the driver's count supports, and the others share the rest.
#pragma once

#include <array>

#include "share/entitlement.h"

namespace carve::share {

using Parts = std::array<Ns, max_clients>;  // By client.

// The evidence for a client's claim.
struct Support {
  Ns credit = 0;          // Time shown by the driver and not charged yet; `never` if unlimited.
  bool is_shown = false;  // The driver's last count was not 0.
};
using Supports = std::array<Support, max_clients>;  // By client.

// Splits the time among the clients in proportion to the time that each had work, and gives no client more
// than that. Returns the sum of the parts.
Ns split(Ns all, const Parts& had, Parts& parts);

// Like split(), but gives no client more than its credit in `supports`. If all credit is used up, the
// driver's count is late, and the time is shared by the clients that the last count showed, or by all clients
// if it showed none.
Ns split_supported(Ns all, const Parts& had, const Supports& supports, Parts& parts);

}  // namespace carve::share
