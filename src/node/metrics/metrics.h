// A node's figures as metrics for Prometheus: the numbers of `carve devices` and `carve top`. The document
// has a few kilobytes and is built at each request; no counter exists only for it. Pure.
#pragma once

#include <string>
#include <vector>

#include "wire/api/device.h"
#include "wire/api/exposition.h"
#include "wire/api/slice.h"

namespace carve::node {

struct NodeFigures {
  std::string version;           // The agent's.
  std::string simulated;         // The set's specification; empty on real devices.
  uint64_t samples = 0;          // Taken from the driver.
  uint64_t sample_took_ns = 0;   // For the last one.
  uint64_t longest_turn_ns = 0;  // The agent's loop.
  std::vector<api::Device> devices;
  std::vector<api::Slice> slices;  // Those that the reader may see.
};

std::string metrics_text(const NodeFigures& node);

}  // namespace carve::node
