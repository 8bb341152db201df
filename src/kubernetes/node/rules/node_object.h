// The Node object: the parts that are read, and the patches that bring it up to date with the advertisement.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/node/rules/advertisement.h"

namespace carve::kubernetes::node {

struct SeenNode {
  kubernetes::ObjectMeta meta;
  std::map<std::string, std::string> capacity, allocatable;  // Quantities.
  std::vector<Condition> conditions;                         // Only Carve's, whose types start with Carve.
  std::string internal_ip = {};  // The first address of type InternalIP; empty if there is none.

  bool has_other_plugin() const;
};

// Parses the whole object, as returned by GET. Fails with a message.
Result<SeenNode, std::string> read_node_object(std::string_view json);

// Returns a merge patch for nodes/N, or no value if the annotation and the label are up to date.
std::optional<std::string> metadata_patch(const SeenNode&, const Advertisement&);

// Returns a strategic merge patch for nodes/N/status, or no value if the status is up to date. `now` is in
// RFC 3339 and is set in changed conditions.
std::optional<std::string> status_patch(const SeenNode&, const Advertisement&, const std::string& now);

}  // namespace carve::kubernetes::node
