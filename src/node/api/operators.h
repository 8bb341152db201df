// The users who may see and change the slices of all users, and the node itself: root, the agent's own user, the
// controller's user, and the members of one group. The kernel reports a caller's uid and groups, so the group
// database is read only for the group's id.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace carve::node {

inline constexpr const char* default_operators_group = "carve-operators";

struct Operators {
  std::vector<uint32_t> uids;
  std::string group;                 // Empty if no group may operate.
  std::optional<uint32_t> gid = {};  // Id of the group; no value if it does not exist.

  bool includes(uint32_t uid) const { return std::ranges::find(uids, uid) != uids.end(); }
};

}  // namespace carve::node
