// The nodes with which the controller was started. Polls each agent every 2 s, logs changes, keeps the
// database up to date, and returns all nodes as a document. A node that is in the database but not on the
// command line is not shown; its record is kept for when the node is named again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/agent_poller.h"
#include "controller/known_node.h"
#include "os/loop.h"

namespace carve::controller {

class KnownNodes {
 public:
  // Calls `reported` with each answer of an agent.
  using Reported = std::function<void(const std::string& node, const api::AgentReport&)>;
  KnownNodes(os::Loop&, ControllerStore&, const std::vector<NodeAddress>&,
             const std::vector<NodeRecord>& earlier, NodeSync& node_sync, Reported reported = nullptr);
  ~KnownNodes();
  KnownNodes(const KnownNodes&) = delete;
  KnownNodes& operator=(const KnownNodes&) = delete;

  // Polls the agents now and then every 2 s.
  void begin();
  // Polls all agents now. An agent whose poll is in progress is polled again afterwards.
  void poll();
  // Stores the last answers and stops the pollers.
  void end();

  // Returns the nodes in the order of the command line.
  std::vector<NodeObservationPointer> seen() const;

 private:
  struct Node {
    KnownNode known;
    std::unique_ptr<AgentPoller> poller = {};
    bool polls_again = false;  // Poll again after the poll in progress.
  };
  void poll_all();
  bool begin_poll(const Node&);
  void take(Node&, const Poll&);
  void store(bool all);

  os::Loop& loop_;
  ControllerStore& store_;
  NodeSync& node_sync_;
  const Reported reported_;
  std::vector<Node> nodes_;
  bool store_failed_ = false;  // The last transaction failed, and the reason was logged.
};

}  // namespace carve::controller
