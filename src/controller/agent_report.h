// What one poll of an agent returns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "wire/api/device.h"
#include "wire/api/node.h"
#include "wire/api/slice.h"

namespace carve::controller {

struct AgentReport {
  api::Version version;
  std::vector<api::Device> devices;
  std::vector<api::Slice> slices;  // Living slices.
  api::Node node;
};

struct Poll {
  int64_t ended_ns = 0;  // UTC, when the agent had answered or the poll had failed.
  Result<AgentReport, std::string> answer;
};

}  // namespace carve::controller
