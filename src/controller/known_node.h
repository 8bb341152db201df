// The controller's knowledge of one node: its agent's last answer, and earlier answers from the database. The
// class uses no clock, socket or database. It takes polls and returns the changes as log lines. A repeated
// problem is returned once, not after each poll.
#pragma once

#include <string>
#include <vector>

#include "controller/agent_poll.h"
#include "controller/nodes/node_rules.h"
#include "controller/store/controller_store.h"

namespace carve::controller {

// A node as given on the command line.
struct NodeAddress {
  std::string name;
  std::string socket;  // Socket of its agent.

  friend bool operator==(const NodeAddress&, const NodeAddress&) = default;
};

struct NodeChange {
  enum class Level { info, warning } level;
  std::string text;  // "node a: lost; no agent listens at /run/carve/carved.sock; ..."
};

class KnownNode {
 public:
  // `earlier` is the node's record in the database, or null.
  KnownNode(NodeAddress, const NodeRecord* earlier);

  // Applies a poll of the node, whose machine has these resources, and returns the changes.
  std::vector<NodeChange> update(const Poll&, const workload::HostResources& host = {});

  const NodeObservationPointer& seen() const { return seen_; }

  // Returns whether the record must be written to the database now: the database has no record of this node
  // or an outdated fact, or its last answer is 60 s older than the current one, or is older than the last
  // answer before the agent was lost.
  bool must_be_stored() const;
  // Returns whether the record differs from the database's in any way.
  bool differs_from_stored() const { return record().first_seen_ns != 0 && record() != stored_; }
  const NodeRecord& record() const { return seen_->record; }
  void was_stored() { stored_ = record(); }

 private:
  std::string text_of(const api::AgentReport&) const;

  NodeObservationPointer seen_;
  NodeRecord stored_;
};

}  // namespace carve::controller
