// Polls one agent. A poll makes four calls: for the agent's version, settings, devices and slices. An agent
// may be stopped or stuck, so each poller calls from its own thread. A call fails if it has no response
// within 5 s.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "client/agent_client.h"
#include "controller/agent_poll.h"
#include "controller/nodes/node_sync.h"
#include "os/loop.h"
#include "os/worker.h"

namespace carve::controller {

class AgentPoller {
 public:
  // Calls `ended` on the loop with the result of each poll.
  AgentPoller(const os::Loop&, std::string socket, std::function<void(const Poll&)> ended);
  ~AgentPoller();  // Waits for a call in progress, at most 5 s.
  AgentPoller(const AgentPoller&) = delete;
  AgentPoller& operator=(const AgentPoller&) = delete;

  // Begins a poll. Sends the requested changes to the agent first. Returns false if the previous poll is
  // still in progress.
  bool begin_poll(AgentRequest request = {});
  // Ends the thread after the call in progress. When several pollers end, stop all before the first is
  // destroyed, so that their waits overlap.
  void stop();

 private:
  Poll poll(const AgentRequest&) const;

  const os::Loop& loop_;
  const client::AgentClient agent_;
  const std::function<void(const Poll&)> ended_;
  bool is_polling_ = false;
  std::atomic<bool> stops_ = false;  // Also checked between two calls of a poll.
  std::shared_ptr<const int> lives_ = std::make_shared<const int>();  // Expires with this object.
  os::Worker worker_;  // Declared last because its thread uses the other members.
};

}  // namespace carve::controller
