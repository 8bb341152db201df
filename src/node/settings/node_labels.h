// The labels of this node. They are stored in the agent's state and survive a restart.
//
// A system label configures the node (docs/compute.md), and its value cannot be edited: the label must be
// removed, the agent restarted, and the label added again. So programs that read a node's labels never see a
// value that the node does not follow yet.
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
  // Reads the stored labels and applies those of the command line. Fails if the command line edits a system
  // label or if the file cannot be written.
  static Outcome<NodeLabels> open(const std::string& path, const LabelChanges& given);

  // Sets or removes one label. If this fails, nothing is changed. Repeating a change is not an error.
  Outcome<void> change(const std::string& key, const std::optional<std::string>& value);

  const std::map<std::string, std::string>& all() const { return labels_; }
  // Return the settings from labels with these meanings; no value if there is no such label.
  std::optional<Policy> policy() const;
  std::optional<MemoryUnit> memory_unit() const;
  // Returns the key of the label with the meaning; empty if there is none.
  std::string key_of(LabelMeaning) const;

 private:
  std::string path_;
  std::map<std::string, std::string> labels_;
  std::set<std::string> removed_;  // System labels that this agent removed.
};

// Refuse a policy or a memory unit that differs from the one that a label in `labels` sets.
Outcome<void> check_policy(const std::map<std::string, std::string>& labels, Policy);
Outcome<void> check_memory_unit(const std::map<std::string, std::string>& labels, MemoryUnit);

}  // namespace carve::node
