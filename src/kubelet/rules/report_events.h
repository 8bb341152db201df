// What happened on the node between two reports of the agent, as events for users: about the node, and about
// the pods whose slices are concerned. The agent counts (Xids, violations), so an event is not lost between
// two reports; what the first report has is told too, because nothing says that an earlier carve-kubelet did.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kubelet/rules/advertisement.h"
#include "kubelet/rules/slice_events.h"

namespace carve::kubelet {

class ReportEvents {
 public:
  // Returns the events of a new report. `node`: the node's object.
  std::vector<EventNote> of_report(const AgentReport&, const AboutObject& node);
  // Returns the events of conditions that begin to hold, or say something else.
  std::vector<EventNote> of_conditions(const std::vector<Condition>&, const AboutObject& node);

 private:
  void of_device(const api::Device&, const AboutObject& node, std::vector<EventNote>& out);
  void of_slice(const api::Slice&, std::vector<EventNote>& out);
  // Returns how much the count has risen. A count that fell began anew, with the agent.
  uint64_t risen(const std::string& object, const std::string& counter, uint64_t count);

  std::map<std::string, HealthState> health_;                      // By device.
  std::map<std::string, std::map<std::string, uint64_t>> counts_;  // By device or slice, by counter.
  std::map<std::string, std::string> messages_;                    // By condition: the newest that was told.
};

}  // namespace carve::kubelet
