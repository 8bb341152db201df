// Finds the slice's device for a call. The driver numbers devices by CUDA_VISIBLE_DEVICES, and the slice
// numbers them in the agent's order. The UUID connects the two numbers and is read once per ordinal.
#pragma once

#include "guest/linkage/hook.h"
#include "guest/process/process_page.h"

namespace carve::guest {

struct DeviceLookup {
  CUresult result;  // The driver's own error for that device, or CUDA_SUCCESS.
  unsigned device;  // The index in Control::devices, or `not_granted` if the slice lacks it.
};
DeviceLookup find_device(Process& process, CUdevice device);

// The device of the calling thread's next allocation. `result` is the driver's error, for example if there is
// no current context.
struct Current {
  CUresult result;
  unsigned device;
  CUcontext context;
};
Current current(Process& process);

}  // namespace carve::guest
