#include "kubernetes/coordinator/cache/cached_node.h"

#include <algorithm>

namespace carve::kubernetes::coordinator {
namespace {

std::optional<size_t> position(const fleet::GpuNode& node, const Uuid& uuid) {
  const auto found = std::ranges::find(node.devices, uuid, &fleet::GpuDevice::uuid);
  if (found == node.devices.end()) return std::nullopt;
  return static_cast<size_t>(found - node.devices.begin());
}

}  // namespace

std::optional<place::DeviceSet> device_set(const fleet::GpuNode& node,
                                           const std::vector<kubernetes::PlacedPart>& parts) {
  place::DeviceSet out = 0;
  for (const kubernetes::PlacedPart& part : parts) {
    const auto at = position(node, part.device);
    if (!at) return std::nullopt;
    out |= place::DeviceSet{1} << *at;
  }
  return out;
}

}  // namespace carve::kubernetes::coordinator
