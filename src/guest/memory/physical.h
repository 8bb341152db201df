// Physical memory of the virtual memory interface. cuMemCreate takes it, without a context, from the device
// that its properties name. It stays allocated until *all* references end: the handle and every handle
// retained from it, every mapping (which outlives cuMemRelease), every tile of a sparse array and every part
// of a multicast object that it is bound to. The memory is charged at cuMemCreate and released with the last
// reference.
//
// Exported memory also has references in other processes. From its first export on, its charge is a shared
// block of the slice (quota/shared_block.h), and the last reference in this process ends one use of the
// block. A handle imported from another process of the slice is a reference to the same block, and charges
// nothing. A multicast object that can be exported is a block without bytes, and the memory that this process
// binds to it is in blocks within that block.
//
// The driver may reuse a handle's number while the old memory is still mapped, so each memory gets its own
// identity. There are four tables (process/records.h), with look-ups of 15 ns:
//   handles    by handle: its memory's identity; uses = times created, retained, imported
//   physicals  by identity: the charge; uses = 1 for the handle, one per mapping, one per pin
//   mappings   by address: the memory's identity and the mapping's size
//   pins       by place in an array or multicast object: the memory's identity; removed with their owner
//
#pragma once

#include "guest/memory/charged.h"

namespace carve::guest {

// Adds or removes a reference. The last one releases the charge.
void hold(Process& p, uint64_t physical);
void let_go(Process& p, uint64_t physical);

// Returns the identity of the memory behind a handle, or behind an address within a mapping. Returns 0 if
// that memory is not charged.
uint64_t physical_of(Process& p, CUmemGenericAllocationHandle handle);
uint64_t physical_at(Process& p, CUdeviceptr address);

// Records that a position in `owner` (an array, a multicast object's identity) refers to `physical`, or to no
// memory if `physical` is 0.
void pin(Process& p, uint64_t slot, uint64_t owner, uint64_t physical);
void unpin_all_of(Process& p, uint64_t owner);

// Returns a key for the numbers that identify a position in an array or multicast object.
uint64_t map_key_of(const void* bytes, size_t count);

}  // namespace carve::guest
