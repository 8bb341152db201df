// Finds the device whose memory a location names. CUDA 13.5 added a second kind of location: a locality
// domain, which is a part of a device's memory (cuda.h of CUDA 13.5, CUmemLocation).
#pragma once

#include "abi/cuda_types.h"

namespace carve::guest {

// Returns the device's ordinal, or CU_DEVICE_INVALID for host memory.
constexpr CUdevice device_in(const CUmemLocation& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return location.id;
    case CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN: return location.id & 0xff;
    default: return CU_DEVICE_INVALID;
  }
}

constexpr bool is_on_device(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ||
         location.type == CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN;
}

}  // namespace carve::guest
