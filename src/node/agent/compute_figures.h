// The figures of a device's arbitration for display: granted, achieved, waited. They are values copied out of
// the arbiter's thread.
#pragma once

#include <string>
#include <vector>

#include "wire/api/device.h"
#include "wire/api/slice.h"

namespace carve::node {

// Time of the last minute in which a slice waited while another one held the device.
struct WaitFor {
  uint64_t slice = 0;  // The other slice's id in the ledger. It may have ended since.
  uint64_t waiting_ns = 0;
  std::string name = {};  // The other slice's name and owner; set by Agent::devices().
  uint32_t owner = 0;
};

struct SliceCompute {
  uint64_t slice = 0;  // The ledger's id.
  api::PartCompute figures;
  std::vector<WaitFor> waits_60s;  // The longest first.
  uint64_t overlapped_ns = 0;      // Charged time during which other slices also had work.
  uint64_t unsupported_ns = 0;     // Claimed meanwhile, but neither confirmed by the driver nor charged.
};

struct DeviceCompute {
  bool arbitrated = false;  // Whether a share on it is enforced.
  api::DeviceCompute figures;
  std::vector<SliceCompute> slices;
};

}  // namespace carve::node
