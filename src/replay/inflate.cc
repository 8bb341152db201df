#include "replay/inflate.h"

#include <chrono>

#include "place/engine.h"
#include "replay/random.h"

namespace carve::replay {
namespace {

enum Purpose : uint64_t { pods_order = 1, clones = 2, nodes_order = 3 };

}  // namespace

unsigned class_of(const Pod& p) {
  if (p.cards == 0) return 0;
  if (p.cards == 1) return p.milli < 1000 ? 1 : 2;
  return p.cards == 2 ? 3 : p.cards <= 4 ? 4 : 5;
}

std::vector<uint32_t> arrivals(const Trace& trace, uint64_t cards, uint64_t seed) {
  std::vector<uint32_t> order(trace.pods.size());
  uint64_t demand = 0;  // In thousandths of a card.
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i, demand += trace.pods[i].demand();
  Random(seed, pods_order).shuffle(order);
  const uint64_t most = cards * 1300;
  Random chance(seed, clones);
  while (demand > most) {
    const auto i = static_cast<std::ptrdiff_t>(chance.below(order.size()));
    demand -= trace.pods[order[static_cast<size_t>(i)]].demand();
    order.erase(order.begin() + i);
  }
  // A trace that asks for no card at all is replayed as it is.
  while (demand != 0) {
    const auto i = static_cast<uint32_t>(chance.below(trace.pods.size()));
    if (demand + trace.pods[i].demand() > most) break;
    demand += trace.pods[i].demand();
    order.push_back(i);
  }
  return order;
}

Outline inflate(const Cluster& cluster, const Trace& trace, Strategy strategy, bool known, uint64_t seed) {
  place::Engine engine(strategy);
  std::vector<uint32_t> order(cluster.nodes.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  Random(seed, nodes_order).shuffle(order);
  for (const uint32_t i : order) {
    const Node& from = cluster.nodes[i];
    place::NodeState node;
    node.cpu_free = from.cpu_milli;
    node.host_free = {from.memory_mib << 20};
    node.model = static_cast<uint8_t>(*engine.fleet().model(from.model));
    place::CardState card;
    card.usable = card.free = 16_GiB;  // Nobody asks for any.
    engine.fleet().add(node, std::vector<place::CardState>(from.cards, card));
  }

  if (engine.expects() && (known || !engine.learns())) {
    place::Census census(UINT64_MAX);
    for (const Pod& pod : trace.pods) census.count(ask_of(pod, engine.fleet()));
    engine.expect(census.workload());
  }

  std::vector<place::Kind> kinds;
  for (const Pod& pod : trace.pods) kinds.push_back(engine.kind(ask_of(pod, engine.fleet())));

  const uint64_t all = cluster.cards() * 1000;
  Outline out;
  std::array<uint64_t, class_names.size()> failed{};
  std::array<uint64_t, class_names.size()> arrived{};
  uint64_t asked = 0;
  uint64_t held = 0;
  size_t mark = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&](size_t m) {
    out.allocated[m] = 100.0 * static_cast<double>(held) / static_cast<double>(all);
    out.failed[m] = failed;
    out.arrived[m] = arrived;
  };
  for (const uint32_t i : arrivals(trace, cluster.cards(), seed)) {
    const Pod& pod = trace.pods[i];
    // A mark shows what stood before the arrival that passes it.
    asked += pod.demand();
    while (mark < marks.size() && asked * 100 > all * marks[mark]) passed(mark++);
    const bool placed = engine.place(kinds[i]).has_value();
    ++arrived[class_of(pod)];
    if (placed)
      held += pod.demand();
    else
      ++failed[class_of(pod)];
    ++out.decisions;
  }
  while (mark < marks.size()) passed(mark++);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  out.bytes_per_node = engine.bytes_per_node();
  out.kinds = engine.kinds();
  return out;
}

}  // namespace carve::replay
