#include "replay/inflate.h"

#include <chrono>

namespace carve::replay {
std::vector<uint32_t> arrivals(const Trace& trace, uint64_t devices, uint64_t seed) {
  std::vector<uint32_t> order(trace.pods.size());
  uint64_t demand = 0;  // In thousandths of a device.
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i, demand += trace.pods[i].demand();
  Random(seed, pods_order).shuffle(order);
  const uint64_t most = devices * 1300;
  Random chance(seed, clones);
  while (demand > most) {
    const auto i = static_cast<std::ptrdiff_t>(chance.below(order.size()));
    demand -= trace.pods[order[static_cast<size_t>(i)]].demand();
    order.erase(order.begin() + i);
  }
  // A trace without requests for devices is replayed unchanged.
  while (demand != 0) {
    const auto i = static_cast<uint32_t>(chance.below(trace.pods.size()));
    if (demand + trace.pods[i].demand() > most) break;
    demand += trace.pods[i].demand();
    order.push_back(i);
  }
  return order;
}

Inflated inflate(const Cluster& cluster, const Trace& trace, Strategy strategy, bool known, uint64_t seed) {
  Setup setup(cluster, trace, strategy, known, seed);
  const uint64_t all = cluster.devices() * 1000;
  Inflated out;
  std::array<uint64_t, class_names.size()> failed{};
  std::array<uint64_t, class_names.size()> arrived{};
  uint64_t asked = 0;
  uint64_t held = 0;
  size_t mark = 0;
  unsigned point = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto in_use = [&] { return 100.0 * static_cast<double>(held) / static_cast<double>(all); };
  const auto passed = [&](size_t m) {
    out.allocated[m] = in_use();
    out.failed[m] = failed;
    out.arrived[m] = arrived;
  };
  for (const uint32_t i : arrivals(trace, cluster.devices(), seed)) {
    const Pod& pod = trace.pods[i];
    // A mark is recorded before the arrival that passes it.
    asked += pod.demand();
    while (mark < marks.size() && asked * 100 > all * marks[mark]) passed(mark++);
    for (; point < curve_points && asked * 100 > all * point; ++point) out.curve[point] = in_use();
    const bool placed = setup.engine.place(setup.classes[i]).has_value();
    ++arrived[class_of(pod)];
    if (placed)
      held += pod.demand();
    else
      ++failed[class_of(pod)];
    ++out.effort.decisions;
  }
  while (mark < marks.size()) passed(mark++);
  while (point < curve_points) out.curve[point++] = in_use();
  out.effort.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  out.effort.bytes_per_node = setup.engine.bytes_per_node();
  out.effort.classes = setup.engine.classes();
  return out;
}

}  // namespace carve::replay
