// Labels that users and clusters attach to nodes and slices: a key with a value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/failure.h"

namespace carve {

inline constexpr unsigned max_labels = 64;
inline constexpr unsigned max_label_bytes = 253;  // Key, value, model, account or application, in bytes.

// The label with which a node pool sets the policy of its nodes.
inline constexpr const char* policy_label = "vke.volcengine.com/mgpu-compute-policy";

// The meanings that labels have for an agent.
enum class LabelMeaning : uint8_t {
  none,
  policy,       // The node's compute policy: policy_label, carve.dev/compute-policy.
  memory_unit,  // carve.dev/memory-unit, gpuMemoryUnit
  placement,    // Mode and placement of a node, which only controllers use; the agent just shows them.
};
LabelMeaning meaning_of(const std::string& key);

// Label changes: a value to set, or no value to remove the label.
using LabelChanges = std::map<std::string, std::optional<std::string>>;

// Reads "KEY=VALUE", or "KEY-" for a removal. Keys and values are printable ASCII.
Outcome<std::pair<std::string, std::optional<std::string>>> parse_label_change(const std::string& word);

// Returns whether the label is a compute policy, the value of which cannot be edited.
bool is_system_label(const std::string& key);

}  // namespace carve
