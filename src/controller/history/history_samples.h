// The samples that a poll of an agent gives. Pure.
#pragma once

#include <string>
#include <vector>

#include "controller/history/history_head.h"
#include "wire/api/agent_report.h"

namespace carve::controller {

std::vector<HistorySample> history_samples(const std::string& node, const api::AgentReport&);

}  // namespace carve::controller
