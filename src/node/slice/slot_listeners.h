// Callbacks that serve the attach sockets of slots. The owner of the agent's sockets sets both functions.
// Until then no slot is served.
#pragma once

#include <functional>

#include "core/container_slot.h"
#include "os/fd.h"

namespace carve::node {

struct SlotListeners {
  std::function<void(ContainerSlot, os::Fd listener)> open;  // Replaces an earlier listener of the slot.
  std::function<void(ContainerSlot)> close;
};

}  // namespace carve::node
