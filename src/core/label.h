// Labels: what users and clusters attach to nodes and slices, a key with a value.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/failure.h"

namespace carve {

inline constexpr unsigned max_labels = 64;
inline constexpr unsigned max_label_bytes = 253;  // Key, value, model, account or application, in bytes.

// The label by which a node pool's policy reaches its nodes.
inline constexpr const char* policy_label = "vke.volcengine.com/mgpu-compute-policy";

// Changes of labels: a value to set, or no value to remove the label.
using LabelChanges = std::map<std::string, std::optional<std::string>>;

// Reads "KEY=VALUE", or "KEY-" for a removal. Keys and values are printable ASCII.
Outcome<std::pair<std::string, std::optional<std::string>>> parse_label_change(const std::string& word);

// Returns whether the label has a meaning for the node itself, so that its value cannot be edited.
bool is_system_label(const std::string& key);

}  // namespace carve
