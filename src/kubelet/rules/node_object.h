// The Node object: what is read of it, and the patches that make it say what the node advertises.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kubelet/rules/advertisement.h"

namespace carve::kubelet {

struct SeenNode {
  kube::ObjectMeta meta;
  std::map<std::string, std::string> capacity, allocatable;  // Quantities.
  std::vector<Condition> conditions;                         // Ours: their types begin with Carve.

  bool has_other_plugin() const;
};

// Reads the whole object, as a GET answers it. Fails with a sentence.
Result<SeenNode, std::string> read_node_object(std::string_view json);

// Returns a merge patch of nodes/N, or no value: annotation and label are as they should be.
std::optional<std::string> metadata_patch(const SeenNode&, const Advertisement&);

// Returns a strategic merge patch of nodes/N/status, or no value. `now`: RFC 3339, for conditions that
// change.
std::optional<std::string> status_patch(const SeenNode&, const Advertisement&, const std::string& now);

}  // namespace carve::kubelet
