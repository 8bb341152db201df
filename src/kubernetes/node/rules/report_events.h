// Events for users about what happened on the node between two reports of the agent: about the node, and
// about the pods of the affected slices. The agent counts (Xids, violations), so no event is lost between two
// reports. The first report's contents become events too, because an earlier carve-kubelet may not have sent
// them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kubernetes/node/rules/advertisement.h"
#include "kubernetes/node/rules/slice_events.h"

namespace carve::kubernetes::node {

class ReportEvents {
 public:
  // Returns the events of a new report. `node` is the node's object.
  std::vector<EventNote> of_report(const api::AgentReport&, const AboutObject& node);
  // Returns the events of conditions that become true, or change their message.
  std::vector<EventNote> of_conditions(const std::vector<Condition>&, const AboutObject& node);

 private:
  void of_device(const api::Device&, const AboutObject& node, std::vector<EventNote>& out);
  void of_slice(const api::Slice&, std::vector<EventNote>& out);
  // Returns how much the count has risen. A lower count means that the agent restarted and counts from 0.
  uint64_t risen(const std::string& object, const std::string& counter, uint64_t count);

  std::map<std::string, HealthState> health_;                      // By device.
  std::map<std::string, std::map<std::string, uint64_t>> counts_;  // By condition: the newest one sent.
  std::map<std::string, std::string> messages_;  // By condition: the newest message that was sent.
};

}  // namespace carve::kubernetes::node
