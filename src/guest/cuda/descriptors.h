// Physical memory that was exported as a file descriptor stays taken while the descriptor is open, whatever
// else is released: so an open descriptor is a hold of its own (physical.h). Nobody tells when one is closed.
// They are looked at, one fstat each (200 ns), when the memory might be free by that: at a release or an
// unmapping, before an allocation is refused, and when memory information is asked. With no descriptor open
// that is one load.
//
// A descriptor that lives in another process only, sent there and closed here, cannot be looked at: the
// charge is given back, and what the memory still takes is growth that the agent finds.
#pragma once

#include "guest/quota/process.h"

namespace carve::guest {

void hold_by_descriptor(Process& p, int fd, uint64_t physical);

// Lets go of what closed descriptors held. Whether anything was.
bool settle_open_descriptors(Process& p);
inline bool settle_descriptors(Process& p) {
  return p.descriptor_count.load(std::memory_order_relaxed) != 0 && settle_open_descriptors(p);
}

}  // namespace carve::guest
