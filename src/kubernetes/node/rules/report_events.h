// Events for users about the node and the pods of affected slices, derived from two consecutive reports of
// the agent. The agent counts Xids and violations, so nothing is lost between two reports. The contents of
// the first report also become events, because an earlier carve-kubelet may not have sent them.
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
  // Returns the events for conditions that have become true or whose message has changed.
  std::vector<EventNote> of_conditions(const std::vector<Condition>&, const AboutObject& node);

 private:
  void of_device(const api::Device&, const AboutObject& node, std::vector<EventNote>& out);
  void of_slice(const api::Slice&, std::vector<EventNote>& out);
  // Returns the increase of the count. A lower count means that the agent has restarted and counts from 0.
  uint64_t risen(const std::string& object, const std::string& counter, uint64_t count);

  std::map<std::string, HealthState> health_;                      // By device.
  std::map<std::string, std::map<std::string, uint64_t>> counts_;  // By condition: the newest count sent.
  std::map<std::string, std::string> messages_;                    // By condition: the newest message sent.
};

}  // namespace carve::kubernetes::node
