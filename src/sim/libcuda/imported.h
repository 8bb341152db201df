// Segments of other processes at addresses of this one: each is mapped once, however many pointers into it
// were opened, and unmapped with the last of them.
#pragma once

#include <memory>

#include "sim/libcuda/shared.h"

namespace carve::sim {

// The address of the segment's first byte, for one more user.
CUresult import_attach(const std::shared_ptr<Shared>&, uint64_t* base);
// One user fewer. Waits for nothing: work that uses it is the caller's to wait for.
void import_detach(uint64_t base);

}  // namespace carve::sim
