// Spill: memory beyond the quota, in host memory (`carve run --oversubscribe managed --spill SIZE`). It is
// for frameworks that size themselves by the memory they see. An allocation that does not fit the rest of the
// quota becomes managed memory. Its first part, as large as the rest of the quota in steps of 2 MiB,
// is advised to stay on the device and charged to it. The remainder is advised to stay on the host, mapped
// for the device, and charged to the slice's second budget (ControlDevice::spill). So the slice never holds
// more than the quota on the device.
//
// Cost: a kernel reads the spilled part over PCIe, at 10 to 25 GB/s instead of 600 to 3,000. A program that
// reads its whole memory in each step runs at the speed of the bus. Off by default.
//
// Spill requires CONCURRENT_MANAGED_ACCESS (Linux, Pascal or newer). Without it managed memory is on the
// device as a whole while a kernel runs, and the allocation is refused as without spill. Pools, virtual
// memory and arrays never spill. The program's advice and prefetches that would move spilled memory to the
// device are ignored, because both are hints.
#pragma once

#include "guest/process/device_lookup.h"

namespace carve::guest {

// Allocates `bytes` that do not fit in the rest of the quota. `takes` is the amount to charge. Returns
// CUDA_ERROR_OUT_OF_MEMORY if both budgets are too small or the memory cannot be placed.
CUresult allocate_spilled(Process& p, const Current& where, uint64_t bytes, Bytes takes,
                          CUdeviceptr* pointer);

// Manages the host bytes of a pointer. lift_spilled() removes the record before the driver frees the pointer,
// because afterwards another thread may have got the same pointer. unspill() then releases the bytes. If the
// free failed, the record is put back.
Record lift_spilled(Process& p, CUdeviceptr pointer);
void unspill(Process& p, const Record& lifted);
void put_back(Process& p, const Record& lifted);

// Releases the host bytes of a context that ended.
void unspill_all_of(Process& p, uint64_t context);

}  // namespace carve::guest
