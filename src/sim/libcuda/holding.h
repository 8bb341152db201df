// Bytes of a device that this process holds without a context. They are counted for the process in the
// device's shared file, and are released when it dies.
#pragma once

#include "sim/libcuda/driver_state.h"

namespace carve::sim {

// Takes bytes of a device (ordinal in the set). Fails with CUDA_ERROR_OUT_OF_MEMORY if the device has no
// room.
CUresult take_bytes(unsigned device, uint64_t bytes);
void give_bytes(unsigned device, uint64_t bytes);

// Waits until all work that this process submitted to a device is done. Used by calls that free memory in
// use.
void wait_device(unsigned device);

}  // namespace carve::sim
