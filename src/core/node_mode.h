// Two settings of a node that determine which slices it accepts. The label carve.dev/mode requests the mode.
#pragma once

#include "core/words.h"

namespace carve {

// The limits that slices of the node have.
enum class NodeMode : uint32_t { memory_and_compute = 0, memory = 1, none = 2, exclusive = 3 };
template <>
struct Words<NodeMode> {
  static constexpr const char* kind = "mode";
  static constexpr std::string_view words[] = {"memory-and-compute", "memory", "none", "exclusive"};
};

// How slices without a share are treated where shares are enforced.
enum class BestEffort : uint32_t { admit = 0, refuse = 1 };
template <>
struct Words<BestEffort> {
  static constexpr const char* kind = "rule for slices without a share";
  static constexpr std::string_view words[] = {"admit", "refuse"};
};

}  // namespace carve
