// What the books show: for checks, settings and metrics.
#include <algorithm>
#include <set>

#include "cluster/books/books.h"
#include "core/request.h"

namespace carve::cluster {

std::vector<std::string> Books::models() const {
  std::set<std::string> out;
  for (const auto& [name, node] : nodes_)
    if (node.state)
      for (const ClusterDevice& device : node.state->devices) out.insert(device.model);
  return {out.begin(), out.end()};
}

std::map<uint64_t, std::vector<std::string>> Books::pods_in_units() const {
  std::map<uint64_t, std::set<std::string>> sorted;
  for (const auto& [uid, pod] : pods_) {
    if (pod.asked == nullptr) continue;
    for (const auto& [container, amounts] : pod.asked->request.containers)
      if (amounts.unit) sorted[*amounts.unit].insert(pod.full_name);
  }
  std::map<uint64_t, std::vector<std::string>> out;
  for (const auto& [unit, names] : sorted) out[unit].assign(names.begin(), names.end());
  return out;
}

std::vector<std::string> Books::overcommitted() const {
  std::vector<std::string> out;
  for (const auto& [name, node] : nodes_) {
    if (!node.state) continue;
    const std::vector<DeviceBook> books = booked(*node.state, slices_on(node));
    for (size_t i = 0; i < books.size(); ++i) {
      const Bytes usable = node.state->devices[i].usable;
      if (books[i].memory <= usable && books[i].isolated <= max_isolated_slices) continue;
      std::string pods;
      for (const std::string& uid : node.pods)
        pods += (pods.empty() ? "" : ", ") + pods_.find(uid)->second.full_name;
      out.push_back(fmt::format(
          "node {} device {}: {} bytes and {} isolated slices are granted, {} bytes are "
          "usable and {} slices fit; pods of the node: {}",
          name, i, books[i].memory.count, books[i].isolated, usable.count, max_isolated_slices, pods));
    }
  }
  return out;
}

}  // namespace carve::cluster
