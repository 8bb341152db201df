// Physical memory that was exported as a file descriptor stays allocated while the descriptor is open,
// whatever else is released. So an open descriptor is a reference of its own (physical.h). No call reports
// the close of a descriptor. The descriptors are checked, one fstat each (200 ns), when a close might have
// freed memory: at a release or an unmapping, before an allocation is refused, and when memory information is
// requested. Without open descriptors this is one load.
//
// A descriptor that was sent to another process and closed here cannot be checked. Its charge is released,
// and what the memory still takes is growth that the agent finds.
#pragma once

#include "guest/process/process_page.h"

namespace carve::guest {

void hold_by_descriptor(Process& p, int fd, uint64_t physical);

// Releases what closed descriptors held. Returns whether there was any.
bool settle_open_descriptors(Process& p);
inline bool settle_descriptors(Process& p) {
  return p.descriptor_count.load(std::memory_order_relaxed) != 0 && settle_open_descriptors(p);
}

}  // namespace carve::guest
