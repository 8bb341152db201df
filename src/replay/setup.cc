#include "replay/setup.h"

namespace carve::replay {

unsigned class_of(const Pod& p) {
  if (p.devices == 0) return 0;
  if (p.devices == 1) return p.milli < 1000 ? 1 : 2;
  return p.devices == 2 ? 3 : p.devices <= 4 ? 4 : 5;
}

Setup::Setup(const Cluster& cluster, const Trace& trace, Strategy strategy, bool known, uint64_t seed)
    : engine(strategy) {
  std::vector<uint32_t> order(cluster.nodes.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  Random(seed, nodes_order).shuffle(order);
  for (const uint32_t i : order) {
    const Node& from = cluster.nodes[i];
    names.emplace_back(from.name);
    place::NodeState node;
    node.cpu_free = from.cpu_milli;
    node.host_free = {from.memory_mib << 20};
    node.model = static_cast<uint8_t>(*engine.fleet().model(from.model));
    place::DeviceState device;
    device.usable = device.free = 16_GiB;  // No pod requests device memory.
    engine.fleet().add(node, std::vector<place::DeviceState>(from.devices, device));
  }

  if (engine.uses_workload_model() && (known || !engine.learns_workload_model())) {
    place::ArrivalCounts arrivals(UINT64_MAX);
    for (const Pod& pod : trace.pods) arrivals.count(shape_of(pod, engine.fleet()));
    engine.set_workload_model(arrivals.workload());
  }

  for (const Pod& pod : trace.pods) classes.push_back(engine.request_class(shape_of(pod, engine.fleet())));
}

}  // namespace carve::replay
