// Managed memory: one address for host and device. Its bytes are this process's ordinary memory; what is told
// here, in steps of 2 MiB, is on which device they live, which decides what is left of that device.
//
// As with NVIDIA's driver where devices have CONCURRENT_MANAGED_ACCESS ("Unified Memory Programming" in the
// CUDA programming guide), an allocation takes nothing. Memory comes to a device when that touches it: a copy
// or a set touches its range, a kernel, of which nobody knows what it reads, all managed memory that does not
// prefer another place. It comes as far as there is room, and the rest stays with the host; whoever takes
// memory of the device sends it back there, by amount. Simplified: advice to prefer the host, and prefetches,
// move memory when they are called.
//
// What it costs: a launch reads one word, unless something may have to move.
#pragma once

#include "sim/libcuda/process.h"

namespace carve::sim {

// A range, in whole blocks, becomes managed memory, or is no more.
void managed_open(uint64_t base, uint64_t bytes);
void managed_close(uint64_t base);

// The context is going: what lives on its device because of it goes to the host.
void managed_forget(CUctx_st&);

// A kernel of the context may touch all; a copy or a set touches a range, which need not be managed memory.
void managed_touch(CUctx_st&);
void managed_touch(CUctx_st&, uint64_t address, uint64_t bytes);

// Where memory is or shall be. CUDA_ERROR_INVALID_DEVICE and CUDA_ERROR_INVALID_VALUE for what is no place.
CUresult check_location(const CUmemLocation&);
// What the calls with a CUdevice mean.
CUmemLocation location_of(CUdevice);

// The rest is of ranges that lie in one allocation; else CUDA_ERROR_INVALID_VALUE.
CUresult managed_advise(uint64_t address, uint64_t bytes, CUmem_advise, const CUmemLocation&);
// `to` is a context on the device that `location` names, or null where it names the host or a device on which
// this process has no context. How many bytes moved is added to *moved.
CUresult managed_prefetch(uint64_t address, uint64_t bytes, const CUmemLocation& location, CUctx_st* to,
                          uint64_t* moved);
// The contents are of no use any more, nor is a place on a device.
CUresult managed_discard(uint64_t address, uint64_t bytes);
CUresult managed_attribute(uint64_t address, uint64_t bytes, CUmem_range_attribute, void* out,
                           size_t out_bytes);

}  // namespace carve::sim
