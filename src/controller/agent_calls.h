// Calls an agent on behalf of the API's callers. The API has only one thread, so a call waits at most 1 s. An
// agent that did not respond is not called again until it has responded to a poll (agent_poller.h).
#pragma once

#include <map>
#include <string>

#include "controller/nodes/node_actions.h"
#include "controller/nodes/node_rules.h"

namespace carve::controller {

class AgentCalls {
 public:
  // `node` is the state from the last poll. Fails without a call if the node is unreachable or did not
  // respond to the previous call.
  Outcome<AgentAnswer> ask(const NodeObservation& node, const AgentCall&, int64_t now_ns);

 private:
  std::map<std::string, int64_t> silent_since_ns_;  // UTC, keyed by node.
};

}  // namespace carve::controller
