// Beyond the quota, onto the host (`carve run --oversubscribe managed --spill SIZE`). For frameworks that
// size themselves by the memory they see: an allocation that does not fit what is left of the quota becomes
// managed memory. Its first part, what is left in steps of 2 MiB, is advised to live on the device and
// charged to it; the rest is advised to live on the host, mapped for the device, and charged to the slice's
// second budget (ControlDevice::spill). So the device still never holds more than the quota.
//
// What it costs: a kernel reads the rest over PCIe, 10 to 25 GB/s instead of 600 to 3,000, so a program that
// goes over its whole memory at each step runs at the speed of the bus. Off unless asked for.
//
// Only where the device has CONCURRENT_MANAGED_ACCESS (Linux, Pascal or newer): without it managed memory
// lives on the device whole while a kernel runs, and the allocation is refused as ever. Pools, virtual memory
// and arrays never spill. Advice and prefetches of the program's own that would move spilled memory to the
// device are passed over: both are hints.
#pragma once

#include "guest/cuda/device.h"

namespace carve::guest {

// Allocates `bytes`, of which there is not enough left; `takes` is the same as it is charged. Over both
// budgets, or where it cannot be done, CUDA_ERROR_OUT_OF_MEMORY.
CUresult allocate_spilled(Process& p, const Current& where, uint64_t bytes, Bytes takes,
                          CUdeviceptr* pointer);

// What of a pointer lives on the host: taken off the record before the driver frees it (afterwards another
// thread may have been given the same pointer), then given back, or put on record again where it was not
// freed.
Record lift_spilled(Process& p, CUdeviceptr pointer);
void unspill(Process& p, const Record& lifted);
void put_back(Process& p, const Record& lifted);

// The context is gone, and all that was allocated in it.
void unspill_all_of(Process& p, uint64_t context);

}  // namespace carve::guest
