#include "kubernetes/coordinator/cache/consolidation_plan.h"

#include <algorithm>
#include <map>

#include "place/consolidation.h"

namespace carve::kubernetes::coordinator {

ClusterConsolidation plan_consolidation(Cache& cache, unsigned wanted) {
  std::map<std::string_view, const CachedPod*> in_order;
  for (const auto& [uid, pod] : cache.pods())
    if (pod.counted.size() == 1 && pod.slices->containers.size() == 1) in_order.emplace(pod.full_name, &pod);
  std::vector<place::PlacedRequest> standing;
  std::vector<const CachedPod*> who;
  for (const auto& [name, pod] : in_order) {
    const CachedPod::Counted& counted = pod->counted.front();
    standing.push_back({counted.request_class, counted.assignment, counted.application});
    who.push_back(pod);
  }
  std::map<uint32_t, std::string> names;
  for (const auto& [name, node] : cache.nodes())
    if (node.number) names[*node.number] = name;

  const place::ConsolidationPlan plan = place::plan_consolidation(cache.engine(), standing, wanted);
  ClusterConsolidation out{.moves = {}, .emptied = {}, .moved = plan.moved};
  for (const place::Move& move : plan.moves) {
    ClusterConsolidation::Move& row = out.moves.emplace_back();
    row.pod = who[move.who]->full_name;
    for (const auto& [from, to] : place::exchanged(move)) {
      row.memory = std::max(row.memory, move.from.memory_on(from));
      row.from.push_back({names[move.from.node], from});
      row.to.push_back({names[move.to.node], to});
    }
  }
  for (const auto& emptied : plan.emptied) out.emptied.push_back({names[emptied.node], emptied.device});
  return out;
}

}  // namespace carve::kubernetes::coordinator
