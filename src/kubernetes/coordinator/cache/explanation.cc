#include "kubernetes/coordinator/cache/explanation.h"

#include <algorithm>

#include "fleet/refusals.h"
#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/cache/node_fit.h"
#include "place/explain.h"
#include "place/migration.h"
#include "place/rules.h"

namespace carve::kubernetes::coordinator {
namespace {

// A migration proposal takes 10 us per tried slice, in the loop that also responds to the scheduler.
constexpr size_t max_migration_nodes = 16, max_migration_candidates = 256;

// The rules that exclude nodes for a pod.
struct Refusals {
  size_t nodes = 0, serving = 0;
  std::map<std::string_view, size_t> by_rule;  // Number of nodes by rule.
  std::vector<const CachedNode*> nearest;      // Nodes with the largest free block first.
  const CachedNode* other = nullptr;           // The first node whose settings do not allow the pod.
};

uint64_t largest_free_block(const place::Fleet& fleet, uint32_t node) {
  uint64_t out = 0;
  for (const place::DeviceState& device : fleet.devices(node))
    if (!device.sick && !device.exclusive) out = std::max(out, device.free.count);
  return out;
}

Refusals refusals_of(Cache& cache, const CachedPod& pod, std::span<const std::string_view> names) {
  std::map<std::string_view, const CachedNode*> in_order;
  for (const std::string_view name : names)
    if (const CachedNode* const node = cache.find_node(name)) in_order.emplace(name, node);
  Refusals out{.nodes = in_order.size(), .by_rule = {}, .nearest = {}};
  std::vector<std::pair<uint64_t, const CachedNode*>> by_room;
  for (const auto& [name, node] : in_order) {
    const std::string_view why = refusal_with_nominated(cache, pod, *node);
    out.serving += why.empty();
    if (why.empty()) continue;
    ++out.by_rule[why];
    if (!node->number) continue;
    if (asks_on(cache, pod, *node) != nullptr)
      by_room.emplace_back(largest_free_block(cache.engine().fleet(), *node->number), node);
    else if (out.other == nullptr)
      out.other = node;
  }
  std::ranges::stable_sort(by_room, std::greater{}, &std::pair<uint64_t, const CachedNode*>::first);
  for (const auto& [free, node] : by_room) out.nearest.push_back(node);
  return out;
}

std::string summary_of(const Refusals& refusals) {
  std::string out = fmt::format("{}/{} nodes can serve", refusals.serving, refusals.nodes);
  std::vector<std::pair<std::string_view, size_t>> rows(refusals.by_rule.begin(), refusals.by_rule.end());
  std::ranges::stable_sort(rows, std::greater{}, &std::pair<std::string_view, size_t>::second);
  for (size_t i = 0; i < rows.size(); ++i)
    out += fmt::format("{}{} {}", i == 0 ? ": " : ", ", rows[i].second, rows[i].first);
  return out;
}

// Returns why the node cannot serve the pod. Empty if each container would fit there without the others.
std::string message_on(Cache& cache, const CachedPod& pod, const CachedNode& node) {
  const place::Fleet& fleet = cache.engine().fleet();
  const auto& asks = pod.asked->on(node.state->kind, fleet);
  if (!asks) return asks.error().message;
  for (const ContainerAsk& ask : *asks)
    if (!place::fitting(fleet, *node.number, ask.shape))
      return fleet::refusal_on(fleet, node.number, *node.state, device_uses(cache, node), ask.request,
                               ask.shape)
          .message;
  return "";
}

// Returns the smaller request that would fit, and where.
std::string what_would_fit(Cache& cache, const place::RequestShape& shape) {
  const place::Refusal refused = place::explain(cache.engine().fleet(), shape);
  std::string out;
  for (const place::Refusal::Nearest& near : refused.nearest) {
    const auto node = std::ranges::find_if(
        cache.nodes(), [&](const auto& entry) { return entry.second.number == near.node; });
    if (node == cache.nodes().end()) continue;
    if (near.memory)
      out += fmt::format(". With {} less{} it fits on {}", text(minus(shape.memory, *near.memory)).c_str(),
                         shape.devices > 1 ? " on each device" : "", node->first);
    if (near.share)
      out += fmt::format(". With at most {} of the compute it fits on {}", text(*near.share).c_str(),
                         node->first);
  }
  return out;
}

// Returns the pod (NAMESPACE/NAME) whose migration would make room. Empty if no single migration does. Pods
// with several slices are not candidates, because all slices of a pod must stay on one node.
std::string migration_for(Cache& cache, const CachedPod& asking, const ContainerAsk& ask,
                          std::span<const CachedNode* const> nodes) {
  std::map<std::string_view, const CachedPod*> in_order;
  for (const CachedNode* const node : nodes)
    for (const std::string& uid : node->pods) {
      const CachedPod& pod = *cache.find_pod(uid);
      if (pod.counted.size() == 1 && pod.slices->containers.size() == 1 && !pod.is_deleting &&
          !pod.is_reserved && !pod.change && in_order.size() < max_migration_candidates)
        in_order.emplace(pod.full_name, &pod);
    }
  std::vector<place::PlacedRequest> standing;
  std::vector<std::string_view> names;
  for (const auto& [name, pod] : in_order) {
    const CachedPod::Counted& counted = pod->counted.front();
    standing.push_back({counted.request_class, counted.assignment, counted.application});
    names.push_back(name);
  }
  place::Engine& engine = cache.engine();
  const auto migration = place::propose_migration(engine, engine.request_class(ask.shape), standing,
                                                  engine.application(asking.application));
  return migration ? std::string(names[migration->who]) : "";
}

}  // namespace

std::string explain_waiting(Cache& cache, const std::string& uid, std::span<const std::string_view> names) {
  const CachedPod* const pod = cache.find_pod(uid);
  if (pod == nullptr || pod->asked == nullptr) return std::string(unknown_pod);
  const Refusals refusals = refusals_of(cache, *pod, names);
  std::string out = summary_of(refusals);
  if (refusals.serving != 0) return out;
  if (refusals.nearest.empty() && refusals.other != nullptr)
    return out +
           fmt::format(". Nearest {}: {}", refusals.other->name, message_on(cache, *pod, *refusals.other));
  if (refusals.nearest.empty()) return out;
  const CachedNode& nearest = *refusals.nearest.front();
  const std::vector<ContainerAsk>& asks = *asks_on(cache, *pod, nearest);
  if (asks.empty()) return out;
  if (const std::string why = message_on(cache, *pod, nearest); !why.empty())
    out += fmt::format(". Nearest {}: {}", nearest.name, why);
  if (refusals.nodes < cache.nodes().size()) return out;  // The text may name a node that is not in `nodes`.
  const std::string advice = what_would_fit(cache, asks.front().shape);
  out += advice;
  if (!is_simple(asks)) return out;
  const std::span near(refusals.nearest);
  const std::string mover =
      migration_for(cache, *pod, asks.front(), near.first(std::min(max_migration_nodes, near.size())));
  if (!mover.empty())
    out += fmt::format("{} migration of {} would make room", advice.empty() ? ". A" : "; a", mover);
  return out;
}

std::string explain_waiting(Cache& cache, const std::string& uid) {
  return explain_waiting(cache, uid, node_names(cache));
}

}  // namespace carve::kubernetes::coordinator
