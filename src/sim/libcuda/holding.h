// Bytes of a device that this process holds without a context: they are counted for the process in the
// device's shared file, and go when it dies.
#pragma once

#include "sim/libcuda/process.h"

namespace carve::sim {

// `device` is the ordinal in the set. CUDA_ERROR_OUT_OF_MEMORY when the device has no room.
CUresult take_bytes(unsigned device, uint64_t bytes);
void give_bytes(unsigned device, uint64_t bytes);

// Waits until all work that this process gave a device is done; for calls that free what it may use.
void wait_device(unsigned device);

}  // namespace carve::sim
