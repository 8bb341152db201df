// Where the agent meets the arbiter: it tells of changed shares, and asks what was granted and had.
#include "node/agent/agent.h"

namespace carve::node {

void Agent::compute_changed(Tenant&) {}

std::optional<DeviceCompute> Agent::compute(const Uuid&) const { return std::nullopt; }

std::string Agent::metering() const { return ""; }

std::vector<TraceSpan> Agent::trace(int64_t) const { return {}; }

}  // namespace carve::node
