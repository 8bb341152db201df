#include "kubernetes/coordinator/cache/overcommit.h"

#include <algorithm>

#include "core/request.h"

namespace carve::kubernetes::coordinator {

std::vector<Overcommit> overcommitted_devices(const Cache& cache) {
  std::vector<Overcommit> out;
  for (const std::string& name : cache.overcommitted_nodes()) {
    const CachedNode& node = *cache.find_node(name);
    const std::vector<fleet::DeviceUse> uses = device_uses(cache, node);
    for (unsigned i = 0; i < uses.size(); ++i) {
      const fleet::GpuDevice& device = node.state->devices[i];
      if (!is_overcommitted(device, uses[i])) continue;
      Overcommit& row = out.emplace_back();
      row = {.node = name,
             .device = i,
             .uuid = device.uuid,
             .granted = uses[i].memory,
             .usable = device.usable,
             .isolated = uses[i].isolated,
             .pods = {}};
      for (const std::string& uid : node.pods) {
        const CachedPod& pod = *cache.find_pod(uid);
        const kubernetes::PodSlices* const one = &*pod.slices;
        const Bytes memory = fleet::device_uses(*node.state, {&one, 1})[i].memory;
        if (memory.count != 0) row.pods.push_back({pod.full_name, memory});
      }
      std::ranges::sort(row.pods, [](const auto& a, const auto& b) {
        return std::pair(b.memory.count, a.pod) < std::pair(a.memory.count, b.pod);
      });
    }
  }
  std::ranges::sort(out, {}, [](const Overcommit& row) { return std::pair(row.node, row.device); });
  return out;
}

std::string text(const Overcommit& row) {
  std::string out = fmt::format(
      "device {} ({}) of node {}: {} and {} isolated slices are granted; it has {} and can have at most {} "
      "slices. Pods: ",
      row.device, text(row.uuid), row.node, text(row.granted).c_str(), row.isolated, text(row.usable).c_str(),
      max_isolated_slices);
  constexpr size_t max_named_pods = 8;  // An event note has at most 1 kB.
  for (size_t i = 0; i < std::min(row.pods.size(), max_named_pods); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", row.pods[i].pod, text(row.pods[i].memory).c_str());
  if (row.pods.size() > max_named_pods) out += fmt::format(", and {} more", row.pods.size() - max_named_pods);
  return out;
}

}  // namespace carve::kubernetes::coordinator
