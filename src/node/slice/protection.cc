#include "node/slice/protection.h"

#include <algorithm>

namespace carve::node {
namespace {

constexpr Bytes min_tolerance{64ull << 20};

}  // namespace

Bytes tolerance(Bytes context) { return std::max(context, min_tolerance); }

std::string cgroup_path(const CgroupTree& tree, const std::string& line) {
  if (!line.starts_with(tree.prefix)) return "";
  const std::string below = line.substr(tree.prefix.size());
  const bool is_above = below.find("/../") != std::string::npos;  // Outside of the agent's cgroup namespace.
  return below.size() < 2 || below[0] != '/' || is_above ? "" : tree.mount + below;
}

SliceProtection protection_of(const NodeState& node, const LiveSlice& slice) {
  SliceProtection out{.slice = slice.id(), .limits = {}, .cgroups = {}, .obstacle = ""};
  for (const SlicePart& part : slice.granted().parts) {
    const NodeDevice* const device = node.device(part.device);
    if (device == nullptr) {
      out.obstacle = "a device of the slice is lost";
      return out;
    }
    const Bytes fatal{part.memory.count + tolerance(device->context).count};
    out.limits.push_back({.minor = device->minor, .bytes = part.memory, .fatal = fatal});
  }
  if (slice.cgroup) out.cgroups.push_back(slice.cgroup->path());
  for (const ContainerIdentity& container : slice.identity.containers) {
    const auto line = container.cgroups.find("");
    const std::string path =
        line != container.cgroups.end() && node.cgroups ? cgroup_path(*node.cgroups, line->second) : "";
    if (path.empty()) {
      out.obstacle = "its container has no cgroup v2 of its own";
      return out;
    }
    out.cgroups.push_back(path);
  }
  if (out.cgroups.empty())
    out.obstacle = slice.outlives_processes() ? "no process has entered it" : "it has no cgroup of its own";
  return out;
}

void protect(NodeState& node, const LiveSlice& slice) {
  if (!slice.limited()) return;
  const Enforcement before = node.guard->enforcement_of(slice.id());
  const Enforcement now = node.guard->protect(protection_of(node, slice));
  const bool is_guarded = node.guard->status().memory.level == EnforcementLevel::kernel;
  if (is_guarded && now.level != EnforcementLevel::kernel && now != before)
    node.event(slice.name(), "its memory limits are enforced only by the guest library: " + now.reason);
}

}  // namespace carve::node
