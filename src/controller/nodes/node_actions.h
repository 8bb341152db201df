// What the routes of nodes ask for that is no change of an object.
#pragma once

#include <string>
#include <vector>

#include "core/failure.h"

namespace carve::controller {

// A request to the agent of a node, and its answer as the agent sent it.
struct AgentCall {
  std::string method;
  std::string target;  // "/v1/slices?all=true"
  std::string body = {};
};
struct AgentAnswer {
  unsigned status = 0;
  std::string type;  // Of its content.
  std::string body;
};

class NodeActions {
 public:
  virtual ~NodeActions() = default;
  // Polls the agents now, so that they follow a change at once.
  virtual void poll() = 0;
  // Ends the node's slices, with their programs.
  virtual void end_slices(const std::string& node) = 0;
  // Returns the names of the node's slices that were requested in units. Asks the agent, for at most 1 s.
  virtual Outcome<std::vector<std::string>> slices_in_units(const std::string& node) = 0;
  // Asks the node's agent, for at most 1 s. An agent that was silent is asked again when it has answered a
  // poll since, so it delays the API once.
  virtual Outcome<AgentAnswer> ask_agent(const std::string& node, const AgentCall&) = 0;
};

}  // namespace carve::controller
