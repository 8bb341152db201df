// The connection to one agent. A poll asks the agent for its version, devices, slices and settings: four
// calls. An agent may be stopped or stuck, so a thread of its own calls, and the loop is notified through an
// eventfd. A call has its answer within 5 s, or fails.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "controller/agent_report.h"
#include "controller/nodes/node_sync.h"

namespace carve::controller {

class AgentLink {
 public:
  explicit AgentLink(std::string socket);
  ~AgentLink();  // Waits for a call that is under way: at most 5 s.
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  // Begins a poll, before which the agent is asked for the changes. Returns false if the last one is still
  // under way.
  bool begin_poll(AgentRequest request = {});
  // Becomes readable when a poll has ended.
  int ready_fd() const;
  // Returns the newest poll that has ended, once.
  std::optional<Poll> take();
  // Ends the thread after the call that is under way. Several links are stopped before the first is
  // destroyed, so that their waits overlap.
  void stop();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace carve::controller
