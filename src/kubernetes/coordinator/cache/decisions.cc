#include "kubernetes/coordinator/cache/decisions.h"

#include <algorithm>
#include <bitset>
#include <utility>

#include "core/invariant.h"
#include "fleet/choice.h"
#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/cache/node_fit.h"
#include "place/explain.h"

namespace carve::kubernetes::coordinator {
namespace {

constexpr std::string_view bound_elsewhere = "bound to another node";
constexpr uint8_t best_score = 10;

// Filters the nodes of one kind. For a pod with one slice and no selected devices, the engine's index shows
// which nodes can serve it, so one byte is read per node and the rules need not be checked for each device.
// The index ignores the room that is kept for nominated pods.
void filter_kind(Cache& cache, const CachedPod& pod, std::span<const CachedNode* const> nodes, unsigned kind,
                 std::span<std::string_view> out) {
  place::Engine& engine = cache.engine();
  std::span<const uint8_t> scores;
  const std::vector<ContainerAsk>* asks = nullptr;
  bool is_new = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] == nullptr || number_of(nodes[i]->state->kind) != kind) continue;
    if (std::exchange(is_new, false)) {
      asks = asks_on(cache, pod, *nodes[i]);
      if (asks != nullptr && is_simple(*asks))
        scores = engine.scores(engine.request_class(asks->front().shape));
    }
    if (scores.empty() || !nodes[i]->nominated.empty())
      out[i] = refusal_with_nominated(cache, pod, *nodes[i]);
    else if (scores[*nodes[i]->number] != 0)
      out[i] = {};
    else
      out[i] = place::broken_rule(engine.fleet(), *nodes[i]->number, asks->front().shape);
  }
}

}  // namespace

std::vector<std::string_view> filter_nodes(Cache& cache, const std::string& uid,
                                           std::span<const std::string_view> names) {
  std::vector<std::string_view> out(names.size(), unknown_pod);
  const CachedPod* const pod = cache.find_pod(uid);
  if (pod == nullptr || pod->asked == nullptr) return out;
  if (pod->slices) {
    for (size_t i = 0; i < names.size(); ++i)
      out[i] = pod->slices->node == names[i] ? std::string_view() : bound_elsewhere;
    return out;
  }
  std::vector<const CachedNode*> nodes(names.size(), nullptr);  // Null for nodes that can serve no pod.
  std::bitset<fleet::node_kinds> kinds;
  for (size_t i = 0; i < names.size(); ++i) {
    const CachedNode* const node = cache.find_node(names[i]);
    out[i] = no_agent;
    if (node == nullptr || !node->number || !node->state) continue;
    nodes[i] = node;
    kinds.set(number_of(node->state->kind));
  }
  for (unsigned kind = 0; kind < fleet::node_kinds; ++kind)
    if (kinds.test(kind)) filter_kind(cache, *pod, nodes, kind, out);
  return out;
}

std::vector<uint8_t> prioritize_nodes(Cache& cache, const std::string& uid,
                                      std::span<const std::string_view> nodes) {
  std::vector<uint8_t> out(nodes.size(), 0);
  const CachedPod* const pod = cache.find_pod(uid);
  if (pod == nullptr || pod->asked == nullptr) return out;
  std::vector<fleet::Candidate> candidates(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const CachedNode* const node = cache.find_node(nodes[i]);
    if (node == nullptr || !node->number) continue;
    const auto* const asks = asks_on(cache, *pod, *node);
    if (asks != nullptr && !asks->empty())
      candidates[i] = {.number = node->number, .shape = &asks->front().shape};
  }
  const fleet::Ranking ranking =
      fleet::rank(cache.engine(), candidates, cache.engine().application(pod->application));
  for (size_t i = 0; i < nodes.size(); ++i)
    out[i] = static_cast<uint8_t>(ranking.scores[i] * (best_score - 1) / UINT8_MAX);
  if (ranking.best) out[*ranking.best] = best_score;
  return out;
}

Result<kubernetes::PodSlices, std::string> reserve_devices(Cache& cache, const std::string& uid,
                                                           const std::string& node_name) {
  const CachedPod* const pod = cache.find_pod(uid);
  if (pod == nullptr || pod->asked == nullptr)
    return tl::unexpected(fmt::format("pod {}: {}", uid, unknown_pod));
  if (pod->slices && pod->slices->node == node_name) return *pod->slices;
  if (pod->slices)
    return tl::unexpected(fmt::format("pod {} {} to node {}", pod->full_name,
                                      pod->is_reserved ? "is being bound" : "is bound", pod->slices->node));
  const CachedNode* const node = cache.find_node(node_name);
  const std::string_view why = node == nullptr ? no_agent : refusal_with_nominated(cache, *pod, *node);
  if (!why.empty())
    return tl::unexpected(
        fmt::format("pod {} no longer fits on node {}: {}", pod->full_name, node_name, why));
  std::optional<std::vector<DeviceChoice>> chosen;
  {
    AssumedPods assumed(cache);
    place_nominated(assumed, cache, *pod, *node);
    chosen = choose_devices(cache, *pod, *node);
  }
  invariant(chosen.has_value(), "a pod without a refusal fits");
  const kubernetes::PodSlices slices = slices_of(*chosen, *node);
  for (const DeviceChoice& choice : *chosen) cache.engine().count_arrival(choice.ask->shape);
  cache.reserve(uid, slices);
  return slices;
}

bool fits_somewhere(Cache& cache, const std::string& uid, std::span<const std::string_view> nodes) {
  return std::ranges::any_of(filter_nodes(cache, uid, nodes), &std::string_view::empty);
}

bool fits_somewhere(Cache& cache, const std::string& uid) {
  return fits_somewhere(cache, uid, node_names(cache));
}

}  // namespace carve::kubernetes::coordinator
