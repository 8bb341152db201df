// Changes of slices whose pods run. While a change is being written, the larger amounts of both are booked,
// so that neither of the two outcomes exceeds a device.
#include <algorithm>

#include "cluster/books/books.h"
#include "cluster/books/wished_slices.h"

namespace carve::cluster {
namespace {

std::vector<Bytes> memory_on(const ClusterNode& node, const kube::PodSlices& slices) {
  const kube::PodSlices* const one = &slices;
  std::vector<Bytes> out;
  for (const DeviceBook& book : booked(node, {&one, 1})) out.push_back(book.memory);
  return out;
}

bool has_device(const ClusterNode& node, const Uuid& uuid) {
  return std::ranges::find(node.devices, uuid, &ClusterDevice::uuid) != node.devices.end();
}

}  // namespace

Result<kube::PodSlices, std::string> Books::begin_change(const std::string& uid, const kube::PodWish& wish) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.slices || found->second.is_reserved)
    return tl::unexpected(std::string("the pod has no slices yet; change the limits of its manifest"));
  PodBook& pod = found->second;
  if (pod.change) return tl::unexpected(std::string("an earlier change is not over"));
  auto wished = wished_slices(*pod.slices, wish);
  if (!wished) return wished;
  const NodeBook& node = nodes_.at(pod.slices->node);
  for (const auto& [container, slice] : wished->containers)
    for (const kube::PlacedPart& part : slice.parts)
      if (!node.state || !has_device(*node.state, part.device))
        return tl::unexpected(fmt::format("node {} does not describe device {}; try again when its agent has",
                                          node.name, text(part.device)));
  const std::vector<DeviceBook> books = booked(*node.state, slices_on(node));
  const std::vector<Bytes> old = memory_on(*node.state, *pod.slices), next = memory_on(*node.state, *wished);
  for (size_t i = 0; i < books.size(); ++i) {
    if (next[i] <= old[i]) continue;
    const Bytes usable = node.state->devices[i].usable, others = minus(books[i].memory, old[i]);
    const Bytes left = minus(usable, std::min(usable, others));
    if (next[i] <= left) continue;
    return tl::unexpected(fmt::format(
        "device {} of node {}: {} asked for, and {} of {} are granted to other pods; at most {} fits", i,
        node.name, text(next[i]).c_str(), text(others).c_str(), text(usable).c_str(), text(left).c_str()));
  }
  pod.change = PodBook::Change{.from = *pod.slices, .to = *wished};
  book_change(pod);
  return wished;
}

void Books::end_change(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || !found->second.change) return;
  kube::PodSlices before = std::move(found->second.change->from);
  found->second.change.reset();
  book(found->second, std::move(before));
}

void Books::book_change(PodBook& pod) {
  kube::PodSlices counted = larger_of(pod.change->from, pod.change->to);
  if (counted != *pod.slices) book(pod, std::move(counted));
}

}  // namespace carve::cluster
