// The labels of this node. They are stored in the agent's state, so that a restart keeps them.
//
// A system label has a meaning of its own (docs/compute.md), and its value cannot be edited: it is removed,
// the agent is restarted, and it is added again. So no program that reads a node's labels sees a value that
// the node does not follow yet.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/label.h"
#include "core/slice.h"

namespace carve::node {

class NodeLabels {
 public:
  // Reads the stored labels and applies the command line's. Fails if the command line edits a system label,
  // and if the file cannot be written.
  static Outcome<NodeLabels> open(const std::string& path, const LabelChanges& given);

  // Sets or removes one label. On failure nothing was changed. Repeating a change is no error.
  Outcome<void> change(const std::string& key, const std::optional<std::string>& value);

  const std::map<std::string, std::string>& all() const { return labels_; }
  std::optional<Policy> policy() const;  // By the policy label.

 private:
  std::string path_;
  std::map<std::string, std::string> labels_;
  std::set<std::string> removed_;  // System labels that this agent removed.
};

}  // namespace carve::node
