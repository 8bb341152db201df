#include "fleet/choice.h"

#include <map>
#include <utility>

namespace carve::fleet {

Ranking rank(place::Engine& engine, std::span<const Candidate> candidates, place::Application application) {
  Ranking out{.scores = std::vector<uint8_t>(candidates.size(), 0), .best = {}};
  struct OfKind {
    std::optional<place::Assignment> found;
    std::vector<uint8_t> scores;  // By the node's number.
  };
  std::map<const place::RequestShape*, OfKind> kinds;
  bool is_best_chosen = false;  // By the engine, over all nodes of its kind.
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto& [number, shape] = candidates[i];
    if (!number || shape == nullptr) continue;
    const auto [kind, is_new] = kinds.try_emplace(shape);
    OfKind& known = kind->second;
    if (is_new) {
      const place::RequestClass k = engine.request_class(*shape);
      known.found = engine.find(k, application);
      const auto scores = engine.scores(k);
      known.scores.assign(scores.begin(), scores.end());
    }
    out.scores[i] = known.scores[*number];
    if (out.scores[i] == 0) continue;
    const bool is_chosen = known.found && known.found->node == *number;
    if (!out.best || std::pair(is_chosen, out.scores[i]) > std::pair(is_best_chosen, out.scores[*out.best]))
      out.best = i, is_best_chosen = is_chosen;
  }
  return out;
}

std::optional<Strategy> strategy_on(std::optional<Strategy> requested, const GpuNode& node) {
  if (requested) return requested;
  return node.placement == Strategy::binpack ? std::optional<Strategy>() : node.placement;
}

}  // namespace carve::fleet
