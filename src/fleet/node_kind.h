// The settings of a node that decide what a request becomes there. Nodes of one kind give equal requests
// equal slices, so a request is translated once for each kind (mode_rule.h).
#pragma once

#include <optional>

#include "core/node_mode.h"
#include "core/slice.h"
#include "place/request_shape.h"

namespace carve::fleet {

struct NodeKind {
  NodeMode mode = NodeMode::memory_and_compute;
  bool is_mode_named = false;  // A label requests the mode; otherwise it is the default.
  // The policy that all slices of the node follow. No value if each device or slice has its own.
  std::optional<Policy> policy = Policy::fixed_share;
  MemoryUnit unit = MemoryUnit::gib;  // Of requests for a number of units.

  friend bool operator==(const NodeKind&, const NodeKind&) = default;
};

inline constexpr unsigned node_kinds = 64;
static_assert(node_kinds <= place::max_node_kinds);

// Returns the number of the kind, below node_kinds.
constexpr unsigned number_of(const NodeKind& kind) {
  const unsigned policy = kind.policy ? 1 + static_cast<unsigned>(*kind.policy) : 0;
  return ((static_cast<unsigned>(kind.mode) * 2 + kind.is_mode_named) * 4 + policy) * 2 +
         static_cast<unsigned>(kind.unit);
}

}  // namespace carve::fleet
