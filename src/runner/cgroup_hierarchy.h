// Finds this process's cgroups: pure functions over the texts of /proc/self/mountinfo and /proc/self/cgroup.
//
// A controller (cpu, memory) belongs to one hierarchy at a time: to a v1 hierarchy if one is mounted with it,
// otherwise to the v2 tree. A hybrid machine has both kinds: its controllers are in v1, and its v2 tree has
// none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace carve::runner {

enum class CgroupVersion : uint8_t { v1, v2 };

// The cgroup of this process in the hierarchy of one controller.
struct OwnCgroup {
  CgroupVersion version = CgroupVersion::v2;
  std::string directory;  // "/sys/fs/cgroup/cpu/system.slice"

  friend bool operator==(const OwnCgroup&, const OwnCgroup&) = default;
};

struct OwnCgroups {
  std::optional<OwnCgroup> cpu, memory;  // No value if no mounted hierarchy can have the controller.

  friend bool operator==(const OwnCgroups&, const OwnCgroups&) = default;
};

// Returns the cgroups from the texts of the two files. A path that is not below the root of its mount, as in
// a container without a cgroup namespace, is taken as the root of the mount.
OwnCgroups find_own_cgroups(std::string_view mountinfo, std::string_view cgroup);

}  // namespace carve::runner
