#include "kubernetes/cli/consolidate.h"

#include <fmt/format.h>

#include "kubernetes/cli/explain.h"
#include "kubernetes/coordinator/cache/consolidation_plan.h"

namespace carve::kubernetes::cli {
namespace {

std::string joined_names(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

std::string name_of(const coordinator::ClusterConsolidation::Device& device) {
  return fmt::format("{}/{}", device.node, device.device);
}

}  // namespace

ConsolidationList consolidation_of(const ClusterView& view, unsigned wanted) {
  coordinator::Cache cache = cache_of(view);
  const coordinator::ClusterConsolidation plan = plan_consolidation(cache, wanted);
  ConsolidationList out{.moves = {}, .emptied = {}, .wanted = wanted, .moved = plan.moved};
  for (const coordinator::ClusterConsolidation::Move& move : plan.moves) {
    MoveRow& row =
        out.moves.emplace_back(MoveRow{.pod = move.pod, .from = {}, .to = {}, .memory = move.memory});
    for (const auto& device : move.from) row.from.push_back(name_of(device));
    for (const auto& device : move.to) row.to.push_back(name_of(device));
  }
  for (const auto& device : plan.emptied) out.emptied.push_back(name_of(device));
  return out;
}

Table table_of(const ConsolidationList& list) {
  Table out{.headings = {"POD", "FROM", "TO", "MEMORY"}, .rows = {}};
  for (const MoveRow& row : list.moves)
    out.rows.push_back({row.pod, joined_names(row.from), joined_names(row.to), text(row.memory).c_str()});
  return out;
}

std::string summary(const ConsolidationList& list) {
  if (list.emptied.empty()) return "no device can be emptied by moving slices";
  return fmt::format(
      "{} would be empty after {} move{} of {} in total{}; no slice was moved", joined_names(list.emptied),
      list.moves.size(), list.moves.size() == 1 ? "" : "s", text(list.moved).c_str(),
      list.emptied.size() < list.wanted ? fmt::format(", but no plan was found for {}", list.wanted) : "");
}

}  // namespace carve::kubernetes::cli
