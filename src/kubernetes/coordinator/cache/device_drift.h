// Devices on which the slices in a node's ledger differ from those in the cache.
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
  std::vector<Row> rows;  // Sorted by amount in the ledger, the largest first.
};

// Returns the devices of the node whose slices differ, sorted by device.
std::vector<DeviceDrift> ledger_drift(const Cache&, const std::string& node, const kubernetes::NodeLedger&);

// Returns a message with the device, amounts and pods.
std::string text(const DeviceDrift&);

}  // namespace carve::kubernetes::coordinator
