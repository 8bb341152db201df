// The agent's state as the API's documents.
#pragma once

#include <functional>

#include "node/agent/agent.h"
#include "node/metrics/metrics.h"
#include "wire/api/device.h"
#include "wire/api/node.h"
#include "wire/api/slice.h"

namespace carve::node {

// Returns whether the caller may see a slice's name.
using MaySee = std::function<bool(const ledger::UsageRecord&)>;

// The state of the agent for one request of one caller. An arbiter is asked at most once, because the
// question delays its work.
class ViewContext {
 public:
  ViewContext(const Agent& agent, MaySee may_see) : agent_(agent), may_see_(std::move(may_see)) {}
  const Agent& agent() const { return agent_; }
  std::string name_of(const ledger::UsageRecord& record) const {
    return may_see_(record) ? record.slice.name : "another user's slice";
  }
  bool may_see(const ledger::UsageRecord& record) const { return may_see_(record); }
  const std::optional<DeviceCompute>& compute(const Uuid& device) const {
    const auto known = compute_.find(device);
    return known != compute_.end() ? known->second
                                   : compute_.emplace(device, agent_.compute(device)).first->second;
  }

 private:
  const Agent& agent_;
  MaySee may_see_;
  mutable std::map<Uuid, std::optional<DeviceCompute>> compute_;
};

NodeFigures figures(const ViewContext&);  // For the metrics.
api::Node view_node(const ViewContext&);
api::Device view(const ViewContext&, const NodeDevice&);
api::Slice view(const ViewContext&, const LiveSlice&, bool whole);
api::Slice view(const Agent&, const ledger::UsageRecord& ended, bool whole);

}  // namespace carve::node
