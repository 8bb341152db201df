// Makes the agent's files again that were removed while it runs: the runtime directory with the state files,
// the attach directories and their sockets. A removed file would otherwise be noticed when a program cannot
// start.
#pragma once

#include <string>

#include "node/slice/node_state.h"

namespace carve::node {

class RuntimeFiles {
 public:
  explicit RuntimeFiles(NodeState& node) : node_(node) {}

  // Looks whether the files are there: a few calls of the kernel. Called each second. Each loss is an event.
  void check();

 private:
  // Reports the same trouble once.
  void report_trouble(const std::string& sentence);

  NodeState& node_;
  std::string trouble_;
};

}  // namespace carve::node
