#include "node/identity/identity.h"

#include <algorithm>
#include <cstdint>

namespace carve::node {
namespace {

bool is_ancestor_of_members(const SliceIdentity& slice, const os::ProcessId& process, bool itself) {
  return process == slice.root || slice.attached.contains(process) ||
         (process == slice.supervisor && !itself) ||
         std::ranges::find(slice.containers, process, &ContainerIdentity::init) != slice.containers.end();
}

// Returns the slice that the cgroup or the pid namespace identifies.
std::optional<size_t> slice_by_groups(pid_t pid, const std::vector<const SliceIdentity*>& slices,
                                      const World& world) {
  const Cgroups cgroups = world.cgroups(pid);
  const auto v2 = cgroups.find("");
  std::optional<uint64_t> pid_namespace;  // Read only if a container needs it.
  for (size_t i = 0; i < slices.size(); ++i) {
    const SliceIdentity& slice = *slices[i];
    if (!slice.cgroup.empty() && v2 != cgroups.end() && is_under(v2->second, slice.cgroup)) return i;
    for (const ContainerIdentity& container : slice.containers) {
      if (!pid_namespace) pid_namespace = world.pid_namespace(pid);
      if (is_in(container, cgroups, *pid_namespace)) return i;
    }
  }
  return std::nullopt;
}

// Returns the start of the oldest process whose descendants are in a slice.
uint64_t oldest_start(const std::vector<const SliceIdentity*>& slices) {
  uint64_t oldest = UINT64_MAX;
  const auto add = [&](const os::ProcessId& process) {
    if (process) oldest = std::min(oldest, process.start);
  };
  for (const SliceIdentity* slice : slices) {
    add(slice->root);
    add(slice->supervisor);
    for (const ContainerIdentity& container : slice->containers) add(container.init);
    for (const os::ProcessId& process : slice->attached) add(process);
  }
  return oldest;
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

std::optional<size_t> slice_of(const os::ProcessStat& process,
                               const std::vector<const SliceIdentity*>& slices, const World& world) {
  if (const auto found = slice_by_groups(process.id.pid, slices, world)) return found;
  const uint64_t oldest = oldest_start(slices);
  os::ProcessStat at = process;
  for (int generation = 0; generation < max_ancestors && at.id.start >= oldest; ++generation) {
    for (size_t i = 0; i < slices.size(); ++i)
      if (is_ancestor_of_members(*slices[i], at.id, at.id == process.id)) return i;
    if (at.parent <= 0) return std::nullopt;
    if (const auto parent = world.stat(at.parent)) {
      at = *parent;
      continue;
    }
    // If the parent has ended in the meantime, the child has a new parent, and the search starts again.
    const auto child = world.stat(at.id.pid), again = world.stat(process.id.pid);
    const bool is_hidden = child && child->id == at.id && child->parent == at.parent;
    if (is_hidden || !again || again->id != process.id) return std::nullopt;
    at = *again;
  }
  return std::nullopt;
}

std::optional<size_t> slice_of(pid_t pid, const std::vector<const SliceIdentity*>& slices,
                               const World& world) {
  if (slices.empty()) return std::nullopt;
  const auto process = world.stat(pid);
  return process ? slice_of(*process, slices, world) : std::nullopt;
}

}  // namespace carve::node
