// kubectl carve consolidate: which slices would have to move so that devices become empty. Pure; nothing is
// moved.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/cli/cluster_view.h"
#include "kubernetes/cli/table.h"

namespace carve::kubernetes::cli {

struct MoveRow {
  std::string pod;
  std::vector<std::string> from, to;  // "n1/0"
  Bytes memory;                       // On each device.
};
struct ConsolidationList {
  std::vector<MoveRow> moves;  // In an order in which each move fits.
  std::vector<std::string> emptied;
  uint32_t wanted = 0;
  Bytes moved;
};
ConsolidationList consolidation_of(const ClusterView&, unsigned wanted);
Table table_of(const ConsolidationList&);
// Returns a message with the result.
std::string summary(const ConsolidationList&);

}  // namespace carve::kubernetes::cli
