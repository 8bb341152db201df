// A node's figures as metrics: the numbers that `carve devices` and `carve top` show. The families are rows of
// wire/api/metric_families.h. The text is generated for each request; no counter exists only for it. A pure
// function.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/enforcement.h"
#include "core/node_phase.h"
#include "wire/api/device.h"
#include "wire/api/exposition.h"
#include "wire/api/slice.h"

namespace carve::node {

struct NodeFigures {
  std::string version;     // The agent's version.
  std::string simulated;   // Specification of the simulated set; empty for real devices.
  std::string host_name;   // For DCGM's series.
  bool dcgm_names = true;  // Include DCGM's series.
  NodePhase phase = NodePhase::running;
  std::map<std::string, bool> pending;  // Settings, and whether they have not taken effect yet.
  uint64_t samples = 0;                 // Number of samples taken from the driver.
  uint64_t sample_took_ns = 0;          // Duration of the last sample.
  uint64_t longest_turn_ns = 0;         // Longest turn of the agent's loop.
  EnforcementLevel memory_enforcement = enforced_by_guest;  // Of memory limits on this node.
  std::vector<api::Device> devices;
  std::vector<api::Slice> slices;  // The slices that the reader may see.
};

std::string metrics_text(const NodeFigures&, api::MetricsFormat);

}  // namespace carve::node
