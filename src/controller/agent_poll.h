// The result of one poll of an agent.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "wire/api/agent_report.h"

namespace carve::controller {

struct Poll {
  int64_t ended_ns = 0;  // UTC, when the agent responded or the poll failed.
  Result<api::AgentReport, std::string> answer;
};

}  // namespace carve::controller
