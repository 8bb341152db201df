// Multicast objects: memory of several devices under one address, through which a kernel's multimem
// instruction writes to all of them at the same time and reads their sum (CUDA driver API, "Multicast Object
// Management"). Devices with NVSwitch have them: here Hopper with NVLinks.
//
// An object takes no memory itself. Memory bound to it stays alive until it is unbound or the object is gone.
// An object can be mapped. No kernel is executed here and no other call may use such an address: copies and
// sets refuse it. Processes cannot share an object.
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
  std::vector<unsigned> devices;  // Ordinals in the set; as many as `team` once all were added.
  std::vector<Bound> bound;
};

// Returns whether a device supports multicast.
bool supports_multicast(const Facts&);

}  // namespace carve::sim
