// Converts the agent's state to the API's documents.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/agent/agent.h"
#include "node/metrics/metrics.h"
#include "wire/api/device.h"
#include "wire/api/node.h"
#include "wire/api/slice.h"

namespace carve::node {

// Returns whether the caller may see the names of this user's slices.
using MaySee = std::function<bool(uint32_t owner)>;

// The state of the agent for one request of one caller. It reads the agent's devices and live slices at most
// once, because each first read delays the arbiters.
class ViewContext {
 public:
  ViewContext(Agent& agent, MaySee may_see) : agent_(agent), may_see_(std::move(may_see)) {}
  Agent& agent() const { return agent_; }
  bool may_see(uint32_t owner) const { return may_see_(owner); }
  const std::vector<DeviceView>& devices() const;
  const std::vector<SliceView>& living() const;
  const DeviceView* device(const Uuid&) const;  // Null if it is not on this node now.
  const std::vector<const SliceView*>& living_on(const DeviceView&) const;
  std::string name_of(const SliceView&) const;  // A placeholder if the caller may not see it.

 private:
  Agent& agent_;
  MaySee may_see_;
  mutable std::optional<std::vector<DeviceView>> devices_;
  mutable std::optional<std::vector<SliceView>> living_;
  mutable std::map<Uuid, std::vector<const SliceView*>> living_on_;
};

NodeFigures figures(const ViewContext&);  // For the metrics.
api::Node view_node(const ViewContext&);
api::Device view(const ViewContext&, const DeviceView&);
api::Event view(const Event&);
// Converts a live or an ended slice. `whole` adds history, events and processes.
api::Slice view(const ViewContext&, const SliceView&, bool whole);

}  // namespace carve::node
