#include "node/identity/pod_cgroup.h"

#include <algorithm>
#include <optional>

namespace carve::node {
namespace {

constexpr std::string_view kubelet_root = "kubepods";

// Returns the uid in a component of a path: "podU" or "kubepods-burstable-podU.slice". `below` is true if the
// component is below kubelet's own cgroup.
std::optional<std::string> uid_in(std::string_view component, bool below) {
  if (component.ends_with(".slice")) component.remove_suffix(std::string_view(".slice").size());
  std::string_view uid;
  const size_t root = component.find(kubelet_root);
  if (const size_t dash = component.find("-pod", root); root < dash && dash != std::string_view::npos)
    uid = component.substr(dash + std::string_view("-pod").size());
  else if (below && component.starts_with("pod"))
    uid = component.substr(std::string_view("pod").size());
  if (uid.empty() || !std::ranges::all_of(uid, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
      }))
    return std::nullopt;
  std::string out(uid);
  std::ranges::replace(out, '_', '-');
  return out;
}

}  // namespace

PodOfProcess pod_of(const Cgroups& cgroups) {
  PodOfProcess out;
  for (const auto& [controllers, path] : cgroups) {
    bool below = false;
    for (size_t begin = 0; begin < path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      const std::string_view component = std::string_view(path).substr(begin, end - begin);
      if (const auto uid = uid_in(component, below)) {
        out.uids.insert(*uid);
        const size_t container_end =
            end == path.size() ? end : std::min(path.find('/', end + 1), path.size());
        out.container.emplace(controllers, path.substr(0, container_end));
        break;
      }
      below |= component.find(kubelet_root) != std::string_view::npos;
      begin = end + 1;
    }
  }
  return out;
}

}  // namespace carve::node
