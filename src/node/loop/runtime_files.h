// Restores files of the agent that were removed while it is running: the runtime directory with the state
// files, the attach directories and their sockets. Otherwise a loss would be noticed only when a program
// cannot start.
#pragma once

#include <string>

#include "node/slice/node_state.h"

namespace carve::node {

class RuntimeFiles {
 public:
  explicit RuntimeFiles(NodeState& node) : node_(node) {}

  // Checks that the files exist, with a few system calls. Called once a second. Each loss is an event.
  void check();

 private:
  // Reports the same problem only once.
  void report_trouble(const std::string& message);

  NodeState& node_;
  std::string trouble_;
};

}  // namespace carve::node
