// Segments of other processes at addresses of this one. Each is mapped once, whatever the number of pointers
// into it, and unmapped with the last of them.
#pragma once

#include <memory>

#include "sim/libcuda/shared.h"

namespace carve::sim {

// Returns the address of the segment's first byte and adds one user.
CUresult import_attach(const std::shared_ptr<Shared>&, uint64_t* base);
// Removes one user. Does not wait: the caller waits for the work that uses the segment.
void import_detach(uint64_t base);

}  // namespace carve::sim
