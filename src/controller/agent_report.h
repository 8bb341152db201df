// What one poll of an agent returns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "wire/api/device.h"
#include "wire/api/node.h"

namespace carve::controller {

struct AgentReport {
  api::Version version;
  std::vector<api::Device> devices;
  uint32_t slices = 0;  // Living slices.
};

struct Poll {
  int64_t ended_ns = 0;  // UTC, when the agent had answered or the poll had failed.
  Result<AgentReport, std::string> answer;
};

}  // namespace carve::controller
