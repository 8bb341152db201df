// Managed memory: one address for host and device. Its bytes are this process's ordinary memory. This file
// records, in steps of 2 MiB, on which device they are, which determines how much of that device is free.
//
// As with NVIDIA's driver on devices with CONCURRENT_MANAGED_ACCESS ("Unified Memory Programming" in the CUDA
// programming guide), an allocation takes no device memory. Memory moves to a device when the device touches
// it. A copy or a set touches its range. A kernel, whose reads are unknown, touches all managed memory that
// does not prefer another location. As much memory moves as there is room for, and the rest stays on the
// host. An allocation that needs device memory evicts as many bytes of managed memory as it lacks. As a
// simplification, prefetches and advice to prefer the host move memory when they are called.
//
// A launch reads one word, unless memory may have to move.
#pragma once

#include "sim/libcuda/driver_state.h"

namespace carve::sim {

// Begin and end a range of managed memory, in whole blocks.
void managed_open(uint64_t base, uint64_t bytes);
void managed_close(uint64_t base);

// Moves memory on the context's device to the host, before the context is destroyed.
void managed_forget(CUctx_st&);

// Record a touch. A kernel of the context may touch all managed memory. A copy or a set touches a range,
// which need not be managed memory.
void managed_touch(CUctx_st&);
void managed_touch(CUctx_st&, uint64_t address, uint64_t bytes);

// Checks a memory location. Fails with CUDA_ERROR_INVALID_DEVICE or CUDA_ERROR_INVALID_VALUE if it is
// invalid.
CUresult check_location(const CUmemLocation&);
// Returns the location that calls with a CUdevice argument mean.
CUmemLocation location_of(CUdevice);

// The ranges passed to the calls below must be inside one allocation; otherwise the calls fail with
// CUDA_ERROR_INVALID_VALUE.
CUresult managed_advise(uint64_t address, uint64_t bytes, CUmem_advise, const CUmemLocation&);
// Moves a range. `to` is a context on the device that `location` names, or null if it names the host or a
// device on which this process has no context. Adds the number of moved bytes to *moved.
CUresult managed_prefetch(uint64_t address, uint64_t bytes, const CUmemLocation& location, CUctx_st* to,
                          uint64_t* moved);
// Discards the contents of a range and moves it off the device.
CUresult managed_discard(uint64_t address, uint64_t bytes);
CUresult managed_attribute(uint64_t address, uint64_t bytes, CUmem_range_attribute, void* out,
                           size_t out_bytes);

}  // namespace carve::sim
