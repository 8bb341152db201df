// Devices for which the annotations of pods grant more than there is.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/coordinator/cache/cache.h"

namespace carve::kubernetes::coordinator {

// The device has shrunk, or annotations were forged.
struct Overcommit {
  std::string node;
  unsigned device = 0;
  Uuid uuid;
  Bytes granted, usable;
  unsigned isolated = 0;  // Slices whose memory is limited.
  struct Grant {
    std::string pod;  // NAMESPACE/NAME
    Bytes memory;
  };
  std::vector<Grant> pods;  // The largest first.
};

// Returns the overcommitted devices, by node and device.
std::vector<Overcommit> overcommitted_devices(const Cache&);

// Returns a message with the device, amounts and pods.
std::string text(const Overcommit&);

}  // namespace carve::kubernetes::coordinator
