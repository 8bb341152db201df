// Multicast objects: memory of several devices under one address, through which a kernel's multimem
// instruction writes to all of them at once and reads their sum (CUDA driver API, "Multicast Object
// Management"). Devices with NVSwitch have them: here Hopper with NVLinks.
//
// An object takes nothing by itself; what is bound to it stays alive until it is unbound or the object is
// gone. An object can be mapped, but no kernel is executed here and nothing else may use such an address:
// copies and sets refuse it. Between processes an object cannot be shared.
#pragma once

#include "sim/libcuda/vmm.h"

namespace carve::sim {

struct Multicast {
  struct Bound {
    unsigned device;
    uint64_t offset, bytes;
    std::shared_ptr<Backing> memory;
  };
  std::mutex mutex;  // Guards what follows.
  unsigned team = 0;
  std::vector<unsigned> devices;  // Ordinals in the set; as many as `team` once all were added.
  std::vector<Bound> bound;
};

// Of a device by its ordinal in the set.
bool supports_multicast(const Facts&);

}  // namespace carve::sim
