#include "node/slice/identity.h"

#include <algorithm>

namespace carve::node {
namespace {

bool is_ancestor_of_members(const SliceIdentity& slice, const os::ProcessId& process, bool itself) {
  return process == slice.root || slice.attached.contains(process) ||
         (process == slice.supervisor && !itself) ||
         std::ranges::find(slice.containers, process, &ContainerIdentity::init) != slice.containers.end();
}

}  // namespace

bool is_in(const ContainerIdentity& container, const Cgroups& cgroups, uint64_t pid_namespace) {
  if (container.cgroups.empty())
    return container.pid_namespace != 0 && container.pid_namespace == pid_namespace;
  return std::ranges::all_of(container.cgroups, [&](const auto& line) {
    const auto own = cgroups.find(line.first);
    return own != cgroups.end() && is_under(own->second, line.second);
  });
}

bool is_under(std::string_view path, std::string_view top) {
  return path.starts_with(top) &&
         (path.size() == top.size() || path[top.size()] == '/' || top.ends_with('/'));
}

Cgroups distinguishing(const Cgroups& containers, const Cgroups& agents) {
  Cgroups out;
  for (const auto& [controllers, path] : containers) {
    const auto agent = agents.find(controllers);
    if (path.empty() || path == "/" || path.find("..") != std::string::npos) continue;
    if (agent != agents.end() && is_under(agent->second, path)) continue;
    out.emplace(controllers, path);
  }
  return out;
}

std::optional<size_t> slice_of(pid_t pid, const std::vector<const SliceIdentity*>& slices,
                               const World& world) {
  if (slices.empty()) return std::nullopt;
  const Cgroups cgroups = world.cgroups(pid);
  const auto v2 = cgroups.find("");
  const uint64_t pid_namespace = world.pid_namespace(pid);
  for (size_t i = 0; i < slices.size(); ++i) {
    const SliceIdentity& slice = *slices[i];
    if (!slice.cgroup.empty() && v2 != cgroups.end() && is_under(v2->second, slice.cgroup)) return i;
    for (const ContainerIdentity& container : slice.containers)
      if (is_in(container, cgroups, pid_namespace)) return i;
  }
  pid_t at = pid;
  for (int generation = 0; generation < max_ancestors && at > 0; ++generation) {
    const auto stat = world.stat(at);
    if (!stat) return std::nullopt;
    for (size_t i = 0; i < slices.size(); ++i)
      if (is_ancestor_of_members(*slices[i], stat->id, generation == 0)) return i;
    at = stat->parent;
  }
  return std::nullopt;
}

}  // namespace carve::node
