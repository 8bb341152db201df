// Channels: the rings through which the driver sends methods to a device's engines (class/clc56f.h). A thread
// of the process reads the rings and passes each method to engines.h.
#pragma once

#include <cstdint>

#include "memory.h"

namespace responder {

struct Channel;

// The location of a channel's ring. `control` contains the structure Nvc56fControl at `control_offset`.
// `errors` receives the notification of a fault and may be null. The channel takes over the caller's
// references.
struct Ring {
  uint64_t address;
  uint32_t entries;
  Memory* control;
  uint64_t control_offset;
  Memory* errors;
};

// Returns null if the ring is not valid, in which case the caller keeps the references.
Channel* open_channel(const Ring& ring);
void close_channel(Channel* channel);
uint32_t id_of(const Channel* channel);

}  // namespace responder
