// Segments of other processes that are mapped into this process. Each is mapped once, however many pointers
// into it exist, and unmapped with the last of them.
#pragma once

#include <memory>

#include "sim/libcuda/shared.h"

namespace carve::sim {

// Returns the address of the segment's first byte and adds one user.
CUresult import_attach(const std::shared_ptr<Shared>&, uint64_t* base);
// Removes one user. Does not wait: the caller waits for the work that uses the segment.
void import_detach(uint64_t base);

}  // namespace carve::sim
