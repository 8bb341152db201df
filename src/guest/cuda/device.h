// Which slice a call means. The driver numbers devices as CUDA_VISIBLE_DEVICES left them; the slice's order
// is the agent's. The UUID joins the two, asked once per ordinal.
#pragma once

#include "guest/linkage/hook.h"
#include "guest/quota/charge.h"

namespace carve::guest {

struct DeviceLookup {
  CUresult result;  // Not CUDA_SUCCESS: the driver does not know that device either, and says how.
  unsigned device;  // The index in Control::devices; `not_granted` for a device that the slice was not given.
};
DeviceLookup find_device(Process& process, CUdevice device);

// Where an allocation of the calling thread would land. The result is the driver's: no current context, say.
struct Current {
  CUresult result;
  unsigned device;
  CUcontext context;
};
Current current(Process& process);

}  // namespace carve::guest
