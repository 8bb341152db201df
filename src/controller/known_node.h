// What the controller knows of one node: what its agent answered last, and what the database has of earlier
// answers. There is no clock, socket or database here: a poll comes in, the changes that it made come out as
// lines for the log. A sentence about the same problem is returned once, not after each poll.
#pragma once

#include <string>
#include <vector>

#include "controller/agent_report.h"
#include "controller/store/controller_store.h"
#include "wire/api/controller.h"

namespace carve::controller {

// A node as the command line names it.
struct NodeAddress {
  std::string name;
  std::string socket;  // Of its agent.

  friend bool operator==(const NodeAddress&, const NodeAddress&) = default;
};

struct NodeChange {
  enum class Level { info, warning } level;
  std::string text;  // "node a: lost; no agent listens at /run/carve/carved.sock; ..."
};

class KnownNode {
 public:
  // `earlier`: what the database has of the node, or null.
  KnownNode(NodeAddress, const NodeRecord* earlier);

  // Takes a poll and returns what changed.
  std::vector<NodeChange> update(const Poll&);

  api::KnownNode document() const;

  // Returns whether the database must have the record now: it has none of this node, an older fact, or a
  // last answer that is 60 s older than the present one or the last one before the agent was lost.
  bool must_be_stored() const;
  // Returns whether the record differs from that of the database at all.
  bool differs_from_stored() const { return record_.first_seen_ns != 0 && record_ != stored_; }
  const NodeRecord& record() const { return record_; }
  void was_stored() { stored_ = record_; }

 private:
  std::string text_of(const AgentReport&) const;

  NodeRecord record_;
  NodeRecord stored_;
  Reachability reachability_ = Reachability::unknown;
  std::string problem_;
  std::vector<api::NodeDevice> devices_;
  uint32_t slices_ = 0;
};

}  // namespace carve::controller
