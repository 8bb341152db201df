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
  std::vector<std::string> out;
  for (const auto& [model, devices] : devices_of_model_) out.push_back(model);
  return out;
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

std::vector<Overcommit> Books::overcommitted() const {
  std::vector<Overcommit> out;
  for (const std::string& name : overcommitted_nodes_) {
    const NodeBook& node = nodes_.find(name)->second;
    const std::vector<DeviceBook> books = booked(*node.state, slices_on(node));
    for (unsigned i = 0; i < books.size(); ++i) {
      const ClusterDevice& device = node.state->devices[i];
      if (!is_overcommitted(device, books[i])) continue;
      Overcommit& row = out.emplace_back();
      row = {.node = name,
             .device = i,
             .uuid = device.uuid,
             .granted = books[i].memory,
             .usable = device.usable,
             .isolated = books[i].isolated,
             .pods = {}};
      for (const std::string& uid : node.pods) {
        const PodBook& pod = pods_.find(uid)->second;
        const kube::PodSlices* const one = &*pod.slices;
        const Bytes memory = booked(*node.state, {&one, 1})[i].memory;
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
      "device {} ({}) of node {}: {} and {} isolated slices are granted; it has {} and room for {} slices. "
      "Pods: ",
      row.device, text(row.uuid), row.node, text(row.granted).c_str(), row.isolated, text(row.usable).c_str(),
      max_isolated_slices);
  constexpr size_t max_named_pods = 8;  // An event has 1 kB.
  for (size_t i = 0; i < std::min(row.pods.size(), max_named_pods); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", row.pods[i].pod, text(row.pods[i].memory).c_str());
  if (row.pods.size() > max_named_pods) out += fmt::format(", and {} more", row.pods.size() - max_named_pods);
  return out;
}

}  // namespace carve::cluster
