#include "kubernetes/coordinator/cache/slice_changes.h"

#include <algorithm>

#include "kubernetes/coordinator/cache/resized_slices.h"

namespace carve::kubernetes::coordinator {
namespace {

std::vector<Bytes> memory_on(const fleet::GpuNode& node, const kubernetes::PodSlices& slices) {
  const kubernetes::PodSlices* const one = &slices;
  std::vector<Bytes> out;
  for (const fleet::DeviceUse& cached : fleet::device_uses(node, {&one, 1})) out.push_back(cached.memory);
  return out;
}

// Returns the slices of the containers named in the resize request.
kubernetes::PodSlices resized_of(const kubernetes::PodSlices& slices, const kubernetes::PodResize& resize) {
  kubernetes::PodSlices out{.node = slices.node};
  for (const auto& [container, slice] : slices.containers)
    if (resize.containers.contains(container)) out.containers.emplace(container, slice);
  return out;
}

bool has_device(const fleet::GpuNode& node, const Uuid& uuid) {
  return std::ranges::find(node.devices, uuid, &fleet::GpuDevice::uuid) != node.devices.end();
}

}  // namespace

Result<kubernetes::PodSlices, std::string> reserve_change(Cache& cache, const std::string& uid,
                                                          const kubernetes::PodResize& resize) {
  const CachedPod* const pod = cache.find_pod(uid);
  if (pod == nullptr || !pod->slices || pod->is_reserved)
    return tl::unexpected(std::string("the pod has no slices yet; change the limits of its manifest"));
  if (pod->change) return tl::unexpected(std::string("an earlier change is still in progress"));
  if (is_changing(*pod->slices))
    return tl::unexpected(fmt::format(
        "node {} has not carried out the previous change of the pod's slices yet; try again later",
        pod->slices->node));
  auto resized = resized_slices(*pod->slices, resize);
  if (!resized) return resized;
  const CachedNode& node = *cache.find_node(pod->slices->node);
  for (const auto& [container, slice] : resized->containers)
    for (const kubernetes::PlacedPart& part : slice.parts)
      if (!node.state || !has_device(*node.state, part.device))
        return tl::unexpected(fmt::format("node {} does not list device {}; try again when its agent does",
                                          node.name, text(part.device)));
  const std::vector<fleet::DeviceUse> uses = device_uses(cache, node);
  kubernetes::PodSlices changed = resized_of(*resized, resize);
  for (auto& [container, slice] : changed.containers) slice.memory_before.reset();
  const std::vector<Bytes> old = memory_on(*node.state, resized_of(*pod->slices, resize)),
                           next = memory_on(*node.state, changed);
  for (size_t i = 0; i < uses.size(); ++i) {
    if (next[i] <= old[i]) continue;
    const Bytes usable = node.state->devices[i].usable, others = minus(uses[i].memory, old[i]);
    const Bytes left = minus(usable, std::min(usable, others));
    if (next[i] <= left) continue;
    return tl::unexpected(fmt::format(
        "device {} of node {}: {} requested, but {} of {} are granted to other containers; at most {} fits{}",
        i, node.name, text(next[i]).c_str(), text(others).c_str(), text(usable).c_str(), text(left).c_str(),
        std::ranges::count_if(next, [](Bytes bytes) { return bytes.count != 0; }) > 1 ? " on each device"
                                                                                      : ""));
  }
  cache.begin_change(uid, *resized);
  return resized;
}

}  // namespace carve::kubernetes::coordinator
