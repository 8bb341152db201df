// Calls of an agent on behalf of the API's callers. The API has one thread, so a call waits for at most 1 s,
// and an agent that was silent is not asked again before it has answered a poll (agent_link.h).
#pragma once

#include <map>
#include <string>

#include "controller/nodes/node_actions.h"
#include "wire/api/controller.h"

namespace carve::controller {

class AgentCalls {
 public:
  // `node`: what the last poll knows of it. Fails without asking if the node is unreachable or was silent.
  Outcome<AgentAnswer> ask(const api::KnownNode& node, const AgentCall&, int64_t now_ns);

 private:
  std::map<std::string, uint64_t> silent_since_ns_;  // By node; UTC.
};

}  // namespace carve::controller
