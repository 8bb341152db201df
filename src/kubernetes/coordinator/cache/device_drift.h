// Devices for which a node's ledger and the cache have different slices.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/coordinator/cache/cache.h"
#include "kubernetes/format/node_ledger.h"

namespace carve::kubernetes::coordinator {

struct DeviceDrift {
  std::string node;
  unsigned device = 0;
  Uuid uuid;
  Bytes granted, usable;  // According to the cache.
  struct Row {
    std::string holder;  // "pod a/web-0, container c", or "slice k7"
    Bytes ledger, in_use;
    Share ledger_share, reserved_share;
  };
  std::vector<Row> rows;  // The largest amounts in the ledger first.
};

// Returns the node's devices that differ, by device.
std::vector<DeviceDrift> ledger_drift(const Cache&, const std::string& node, const kubernetes::NodeLedger&);

// Returns a message with the device, amounts and pods.
std::string text(const DeviceDrift&);

}  // namespace carve::kubernetes::coordinator
