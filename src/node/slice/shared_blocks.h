// Releases memory that a slice's processes exported and that no process and no descriptor holds any more
// (wire/shm/shared_blocks.h). The guest library does the same before it refuses an allocation. The agent does
// it for a slice whose processes make no call, and after a death.
#pragma once

#include "wire/shm/layout.h"

namespace carve::node {

// Costs one load for a slice that exported nothing, and two readings of /proc/locks (20 us) while only
// descriptors may hold memory.
void settle_shared_blocks(shm::Charges& charges);

}  // namespace carve::node
