// Overcommitted devices: the pods' annotations grant more than the device has.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

// Happens if a device has shrunk or annotations were forged.
struct Overcommit {
  std::string node;
  unsigned device = 0;
  Uuid uuid;
  Bytes granted, usable;
  unsigned isolated = 0;  // Number of slices whose memory is limited.
  struct Grant {
    std::string pod;  // NAMESPACE/NAME
    Bytes memory;
  };
  std::vector<Grant> pods;  // Sorted by size, the largest first.
};

// Returns the overcommitted devices, sorted by node and device.
std::vector<Overcommit> overcommitted_devices(const Cache&);

// Returns a message with the device, amounts and pods.
std::string text(const Overcommit&);

}  // namespace carve::kubernetes::coordinator
