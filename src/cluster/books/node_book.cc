#include "cluster/books/node_book.h"

#include <algorithm>

#include "core/request.h"

namespace carve::cluster {
namespace {

std::optional<size_t> position(const ClusterNode& node, const Uuid& uuid) {
  const auto found = std::ranges::find(node.devices, uuid, &ClusterDevice::uuid);
  if (found == node.devices.end()) return std::nullopt;
  return static_cast<size_t>(found - node.devices.begin());
}

void add(DeviceBook& book, const kube::PlacedSlice& slice, const kube::PlacedPart& part) {
  book.memory.count += part.memory.count;
  ++book.slices;
  book.isolated += slice.isolation != Isolation::none;
  book.is_exclusive |= slice.exclusive.value_or(false);
  const Share share = slice.isolation == Isolation::memory_and_compute ? part.share : Share{};
  book.promised.basis_points += promised_share(slice.policy, share).basis_points;
}

}  // namespace

std::vector<DeviceBook> booked(const ClusterNode& node, std::span<const kube::PodSlices* const> pods) {
  std::vector<DeviceBook> out(node.devices.size());
  for (const kube::PodSlices* const pod : pods)
    for (const auto& [container, slice] : pod->containers)
      for (const kube::PlacedPart& part : slice.parts)
        if (const auto at = position(node, part.device)) add(out[*at], slice, part);
  return out;
}

bool is_overcommitted(const ClusterDevice& device, const DeviceBook& book) {
  return book.memory > device.usable || book.isolated > max_isolated_slices;
}

place::DeviceState state_of(const ClusterDevice& device, const DeviceBook& book, bool refuses_best_effort) {
  place::DeviceState out;
  out.usable = device.usable;
  out.free = minus(device.usable, std::min(book.memory, device.usable));
  out.context = device.context;
  out.free_share = {whole_device.basis_points -
                    std::min(book.promised.basis_points, whole_device.basis_points)};
  out.slices = static_cast<uint8_t>(std::min(book.slices, 255u));
  out.isolated = static_cast<uint8_t>(std::min(book.isolated, 255u));
  out.exclusive = book.is_exclusive;
  if (book.is_exclusive) out.free = {}, out.free_share = {};
  out.sick = !device.trouble.empty();
  out.migrates = device.migrates;
  out.shared_out = refuses_best_effort && book.promised.basis_points != 0;
  return out;
}

std::optional<place::DeviceSet> device_set(const ClusterNode& node,
                                           const std::vector<kube::PlacedPart>& parts) {
  place::DeviceSet out = 0;
  for (const kube::PlacedPart& part : parts) {
    const auto at = position(node, part.device);
    if (!at) return std::nullopt;
    out |= place::DeviceSet{1} << *at;
  }
  return out;
}

}  // namespace carve::cluster
