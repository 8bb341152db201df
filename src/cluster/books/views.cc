// What the books show: for checks, settings and metrics.
#include <algorithm>
#include <set>

#include "cluster/books/books.h"
#include "core/request.h"
#include "place/consolidation.h"

namespace carve::cluster {

BooksPlan Books::plan_consolidation(unsigned wanted) {
  std::map<std::string_view, const PodBook*> in_order;  // Equal books make equal plans.
  for (const auto& [uid, pod] : pods_)
    if (pod.counted.size() == 1 && pod.slices->containers.size() == 1) in_order.emplace(pod.full_name, &pod);
  std::vector<place::PlacedRequest> standing;
  std::vector<const PodBook*> who;
  for (const auto& [name, pod] : in_order) {
    const PodBook::Counted& counted = pod->counted.front();
    standing.push_back({counted.request_class, counted.assignment, counted.application});
    who.push_back(pod);
  }
  std::map<uint32_t, std::string> names;
  for (const auto& [name, node] : nodes_)
    if (node.number) names[*node.number] = name;

  const place::ConsolidationPlan plan = place::plan_consolidation(*engine_, standing, wanted);
  BooksPlan out{.moves = {}, .emptied = {}, .moved = plan.moved};
  for (const place::Move& move : plan.moves) {
    BooksPlan::Move& row = out.moves.emplace_back();
    row.pod = who[move.who]->full_name;
    row.memory = move.from.memory;
    for (const auto& [from, to] : place::exchanged(move)) {
      row.from.push_back({names[move.from.node], from});
      row.to.push_back({names[move.to.node], to});
    }
  }
  for (const auto& emptied : plan.emptied) out.emptied.push_back({names[emptied.node], emptied.device});
  return out;
}

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
