// A device of which a node's ledger has other slices than the books.
#pragma once

#include <string>
#include <vector>

#include "core/slice.h"

namespace carve::cluster {

struct DeviceDrift {
  std::string node;
  unsigned device = 0;
  Uuid uuid;
  Bytes granted, usable;  // By the books.
  struct Row {
    std::string holder;  // "pod a/web-0, container c", or "slice k7"
    Bytes ledger, booked;
    Share ledger_share, booked_share;
  };
  std::vector<Row> rows;  // The largest amounts in the ledger first.
};
// Returns device, amounts and pods in a sentence.
std::string text(const DeviceDrift&);

}  // namespace carve::cluster
