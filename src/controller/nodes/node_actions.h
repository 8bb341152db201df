// Actions that the routes of nodes request and that do not change an object.
#pragma once

#include <string>
#include <vector>

#include "core/failure.h"

namespace carve::controller {

// A request to the agent of a node, and its response as the agent sent it.
struct AgentCall {
  std::string method;
  std::string target;  // "/v1/slices?all=true"
  std::string body = {};
};
struct AgentAnswer {
  unsigned status = 0;
  std::string type;  // Content type.
  std::string body;
};

class NodeActions {
 public:
  virtual ~NodeActions() = default;
  // Polls the agents now, so that they follow a change immediately.
  virtual void poll() = 0;
  // Ends the node's slices, with their programs.
  virtual void end_slices(const std::string& node) = 0;
  // Returns the names of the node's slices that were requested in units. Calls the agent and waits for at
  // most 1 s.
  virtual Outcome<std::vector<std::string>> slices_in_units(const std::string& node) = 0;
  // Calls the node's agent and waits for at most 1 s. An agent that did not respond is called again only
  // after it has answered a poll, so it delays the API once.
  virtual Outcome<AgentAnswer> ask_agent(const std::string& node, const AgentCall&) = 0;
};

}  // namespace carve::controller
