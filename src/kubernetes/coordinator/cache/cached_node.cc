#include "kubernetes/coordinator/cache/cached_node.h"

#include <algorithm>

#include "core/request.h"

namespace carve::kubernetes::coordinator {
namespace {

std::optional<size_t> position(const ClusterNode& node, const Uuid& uuid) {
  const auto found = std::ranges::find(node.devices, uuid, &ClusterDevice::uuid);
  if (found == node.devices.end()) return std::nullopt;
  return static_cast<size_t>(found - node.devices.begin());
}

void add(DeviceUse& use, const kubernetes::PlacedSlice& slice, const kubernetes::PlacedPart& part) {
  use.memory.count += held_memory(slice, part).count;
  ++use.slices;
  use.isolated += slice.isolation != Isolation::none;
  use.is_exclusive |= slice.exclusive.value_or(false);
  const Share share = slice.isolation == Isolation::memory_and_compute ? part.share : Share{};
  use.promised.basis_points += promised_share(slice.policy, share).basis_points;
}

}  // namespace

std::vector<DeviceUse> device_uses(const ClusterNode& node,
                                   std::span<const kubernetes::PodSlices* const> pods) {
  std::vector<DeviceUse> out(node.devices.size());
  for (const kubernetes::PodSlices* const pod : pods)
    for (const auto& [container, slice] : pod->containers)
      for (const kubernetes::PlacedPart& part : slice.parts)
        if (const auto at = position(node, part.device)) add(out[*at], slice, part);
  return out;
}

bool is_overcommitted(const ClusterDevice& device, const DeviceUse& use) {
  return use.memory > device.usable || use.isolated > max_isolated_slices;
}

place::DeviceState state_of(const ClusterDevice& device, const DeviceUse& use, bool refuses_best_effort) {
  place::DeviceState out;
  out.usable = device.usable;
  out.free = minus(device.usable, std::min(use.memory, device.usable));
  out.context = device.context;
  out.free_share = {whole_device.basis_points -
                    std::min(use.promised.basis_points, whole_device.basis_points)};
  out.slices = static_cast<uint8_t>(std::min(use.slices, 255u));
  out.isolated = static_cast<uint8_t>(std::min(use.isolated, 255u));
  out.exclusive = use.is_exclusive;
  if (use.is_exclusive) out.free = {}, out.free_share = {};
  out.sick = !device.trouble.empty();
  out.migrates = device.migrates;
  out.shared_out = refuses_best_effort && use.promised.basis_points != 0;
  return out;
}

std::optional<place::DeviceSet> device_set(const ClusterNode& node,
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
