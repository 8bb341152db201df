// A caller's query for the history of a slice or a device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/history/history_metrics.h"

namespace carve::controller {

struct HistoryQuery {
  HistoryKind kind = HistoryKind::slice;
  std::string node;             // Empty for a slice on any node.
  std::string name;             // The slice's; empty for a device.
  uint32_t index = 0;           // The device's.
  std::vector<size_t> metrics;  // Indexes of the kind's metrics.
  int64_t from_ns = 0;          // UTC, a multiple of the step.
  int64_t to_ns = 0;
  int64_t step_ns = 0;
  // Returns whether the caller may see a slice of this owner and account.
  std::function<bool(uint32_t owner, const std::string& account)> may_see = nullptr;
};

}  // namespace carve::controller
