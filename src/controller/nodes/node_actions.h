// What the routes of nodes ask for that is no change of an object.
#pragma once

#include <string>
#include <vector>

#include "core/failure.h"

namespace carve::controller {

class NodeActions {
 public:
  virtual ~NodeActions() = default;
  // Polls the agents now, so that they follow a change at once.
  virtual void poll() = 0;
  // Ends the node's slices, with their programs.
  virtual void end_slices(const std::string& node) = 0;
  // Returns the names of the node's slices that were requested in units. Asks the agent, for at most 1 s.
  virtual Outcome<std::vector<std::string>> slices_in_units(const std::string& node) = 0;
};

}  // namespace carve::controller
