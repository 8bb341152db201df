// Multicast objects: memory of several devices under one address, through which a kernel's multimem
// instruction writes to all of them at the same time and reads their sum (CUDA driver API, "Multicast Object
// Management"). Devices with NVSwitch support them, which in the simulator means Hopper with NVLinks.
//
// An object takes no memory itself. Memory bound to it stays allocated until it is unbound or the object is
// destroyed. An object can be mapped, but copies and sets reject its addresses, because only kernels may use
// them. Processes cannot share an object.
#pragma once

#include "sim/libcuda/vmm.h"

namespace carve::sim {

struct Multicast {
  struct Bound {
    unsigned device;
    uint64_t offset, bytes;
    std::shared_ptr<Backing> memory;
  };
  std::mutex mutex;  // Guards the fields below.
  unsigned team = 0;
  std::vector<unsigned> devices;  // Ordinals in the set; complete once there are `team` of them.
  std::vector<Bound> bound;
};

// Returns whether a device supports multicast.
bool supports_multicast(const Facts&);

}  // namespace carve::sim
