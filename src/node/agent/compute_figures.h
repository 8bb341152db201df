// The figures of a device's arbitration, for display: granted, achieved, waited. Values, copied out of the
// arbiter's thread.
#pragma once

#include <vector>

#include "wire/api/device.h"
#include "wire/api/slice.h"

namespace carve::node {

struct SliceCompute {
  uint64_t slice = 0;  // The ledger's id.
  api::PartCompute figures;
  uint64_t overlapped_ns = 0;   // Of the charged time: beside work of other slices.
  uint64_t unsupported_ns = 0;  // Claimed beside work of other slices, not shown by the driver, not charged.
};

struct DeviceCompute {
  bool arbitrated = false;  // A share on it is enforced.
  api::DeviceCompute figures;
  std::vector<SliceCompute> slices;
};

}  // namespace carve::node
