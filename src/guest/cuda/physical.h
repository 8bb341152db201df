// Physical memory of the virtual memory interface. cuMemCreate takes it, from the device that its properties
// name, without a context; and it stays taken until *all* that refers to it is gone: the handle and every
// handle retained from it, every mapping (which outlives cuMemRelease), every tile of a sparse array and
// every part of a multicast object that it is bound to, and every open descriptor it was exported as. Charged
// at cuMemCreate, given back with the last of these.
//
// A handle's number may be used again while the old memory lives on in a mapping, so memory has an identity
// of our own. Four tables (quota/records.h), each 15 ns a look:
//   handles    by handle: its memory's identity; uses = times created, retained, imported
//   physicals  by identity: the charge; uses = 1 for the handle, one per mapping, one per pin
//   mappings   by address: the memory's identity and the mapping's size
//   pins       by place in an array or multicast object: the memory's identity; they die with their owner
//
// A handle imported from another process is charged at its exporter and known here by nothing; one imported
// where it was exported refers to the same memory, if its descriptor can be told (sharing.h).
#pragma once

#include "guest/cuda/charged.h"

namespace carve::guest {

// One more, or one less, reference. The last one gives the charge back.
void hold(Process& p, uint64_t physical);
void let_go(Process& p, uint64_t physical);

// The memory behind a handle, behind an address within a mapping; 0: none that we charged.
uint64_t physical_of(Process& p, CUmemGenericAllocationHandle handle);
uint64_t physical_at(Process& p, CUdeviceptr address);

// A place of `owner` (an array, a multicast object's identity) now refers to `physical`; 0: to nothing.
void pin(Process& p, uint64_t slot, uint64_t owner, uint64_t physical);
void unpin_all_of(Process& p, uint64_t owner);

// A name for some numbers that are a place.
uint64_t find_stream_slot(const void* bytes, size_t count);

}  // namespace carve::guest
