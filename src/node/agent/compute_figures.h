// The figures of a device's arbitration for display: granted, achieved, waited. They are values copied out of
// the arbiter's thread.
#pragma once

#include <vector>

#include "wire/api/device.h"
#include "wire/api/slice.h"

namespace carve::node {

struct SliceCompute {
  uint64_t slice = 0;  // The ledger's id.
  api::PartCompute figures;
  uint64_t overlapped_ns = 0;   // Charged time during which other slices also had work.
  uint64_t unsupported_ns = 0;  // Claimed meanwhile, but neither confirmed by the driver nor charged.
};

struct DeviceCompute {
  bool arbitrated = false;  // Whether a share on it is enforced.
  api::DeviceCompute figures;
  std::vector<SliceCompute> slices;
};

}  // namespace carve::node
