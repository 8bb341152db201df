// What a scheduler asks: where a pod can be, where it is best, and which devices it gets.
#include <algorithm>
#include <bit>
#include <bitset>
#include <utility>

#include "cluster/books/supposition.h"
#include "core/invariant.h"
#include "place/explain.h"
#include "place/migration.h"
#include "place/rules.h"

namespace carve::cluster {
namespace {

constexpr std::string_view unknown_pod = "the pod is not known";
constexpr std::string_view no_agent = "no agent";
constexpr std::string_view other_mode = "other mode";
constexpr std::string_view other_policy = "other policy";
constexpr std::string_view together = "the containers together";
constexpr std::string_view bound_elsewhere = "bound to another node";

constexpr uint8_t best_score = 10;
// A proposal costs 10 us for each slice that is tried, in the loop that answers the scheduler.
constexpr size_t max_migration_nodes = 16, max_migration_candidates = 256;

kube::PlacedSlice slice_of(const ContainerAsk& ask, const ClusterNode& node,
                           const place::Assignment& assignment) {
  const Request& request = ask.request;
  kube::PlacedSlice out{
      .isolation = request.isolated(), .policy = *request.policy, .latency_class = request.latency};
  if (request.exclusive) out.exclusive = true;
  if (request.memory_units.count != 0) {
    out.unit = size_of(request.memory_units.unit).count;
    out.units = request.memory_units.count;
  }
  if (request.spill.count != 0) out.spill = request.spill.count;
  for (place::DeviceSet set = assignment.devices; set != 0; set &= set - 1) {
    const ClusterDevice& device = node.devices[static_cast<size_t>(std::countr_zero(set))];
    const Bytes memory = request.exclusive ? device.usable : assignment.memory;
    out.parts.push_back({device.uuid, memory, request.exclusive ? whole_device : request.share});
  }
  return out;
}

// One container asks, and any device may serve it.
bool is_simple(const std::vector<ContainerAsk>& asks) {
  return asks.size() == 1 && asks.front().devices.empty();
}

// Returns why no node of this kind serves the request.
std::string_view refusal_of_kind(const kube::PodRequest& request, const NodeKind& kind) {
  const bool names_other = std::ranges::any_of(request.containers, [&](const auto& entry) {
    return entry.second.policy.value_or(kind.policy) != kind.policy;
  });
  return names_other ? other_policy : other_mode;
}

std::optional<Strategy> strategy_on(const ContainerAsk& ask, const ClusterNode& node) {
  if (ask.strategy) return ask.strategy;
  return node.placement == Strategy::binpack ? std::optional<Strategy>() : node.placement;
}

}  // namespace

const std::vector<ContainerAsk>* Books::asks_on(PodBook& pod, const NodeBook& node) {
  invariant(pod.asked != nullptr && node.state);
  const NodeKind& kind = node.state->kind;
  auto& known = pod.asked->by_kind;
  auto found = known.find(number_of(kind));
  if (found == known.end())
    found =
        known.emplace(number_of(kind), cluster::asks_on(pod.asked->request, kind, engine_->fleet())).first;
  return found->second ? &*found->second : nullptr;
}

place::RequestClass Books::class_of(const ContainerAsk& ask) { return engine_->request_class(ask.shape); }

// Returns the devices for each container; no value: they do not fit.
std::optional<std::vector<Books::Choice>> Books::choices(PodBook& pod, const NodeBook& node) {
  if (!node.number) return std::nullopt;
  const auto* const asks = asks_on(pod, node);
  if (asks == nullptr || asks->empty()) return std::nullopt;
  if (!is_simple(*asks)) return choices_apart(pod, node, *asks);
  const ContainerAsk& ask = asks->front();
  const place::RequestClass k = class_of(ask);
  const auto found =
      engine_->find_on(k, *node.number, engine_->application(pod.application), strategy_on(ask, *node.state));
  if (!found) return std::nullopt;
  return std::vector<Choice>{{ask.container, &ask, k, *found}};
}

// Places the containers one after the other, in a fleet of this node alone.
std::optional<std::vector<Books::Choice>> Books::choices_apart(PodBook&, const NodeBook& node,
                                                               std::span<const ContainerAsk> asks) {
  const place::Fleet& fleet = engine_->fleet();
  const auto states = fleet.devices(*node.number);
  place::Engine alone(strategy_on(asks.front(), *node.state).value_or(Strategy::binpack));
  for (unsigned i = 0; i < fleet.models(); ++i) alone.fleet().model(fleet.model_name(i));
  const uint32_t here = alone.fleet().add(fleet.node(*node.number), states);
  if (node.state->links) alone.fleet().set_topology(here, *node.state->links);
  std::vector<Choice> out;
  for (const ContainerAsk& ask : asks) {
    const auto is_named = [&](unsigned i) {
      return ask.devices.empty() ||
             std::ranges::find(ask.devices, node.state->devices[i].uuid) != ask.devices.end();
    };
    for (unsigned i = 0; i < states.size(); ++i) {
      place::DeviceState state = alone.fleet().devices(here)[i];
      state.sick = states[i].sick || !is_named(i);
      alone.fleet().set_device(here, i, state);
    }
    const place::RequestClass k = alone.request_class(ask.shape);
    const auto found = alone.find_on(k, here);
    if (!found) return std::nullopt;
    alone.take(k, *found);
    out.push_back({ask.container, &ask, class_of(ask), {*node.number, found->devices, found->memory}});
  }
  return out;
}

// Returns the short name of the rule that keeps the pod from the node; empty: it can be there.
std::string_view Books::refusal(PodBook& pod, const NodeBook& node) {
  if (!node.state || !node.number) return no_agent;
  const auto* const asks = asks_on(pod, node);
  if (asks == nullptr || asks->empty()) return refusal_of_kind(pod.asked->request, node.state->kind);
  for (const ContainerAsk& ask : *asks)
    if (!place::fitting(engine_->fleet(), *node.number, ask.shape))
      return place::broken_rule(engine_->fleet(), *node.number, ask.shape);
  if (is_simple(*asks) || choices_apart(pod, node, *asks)) return "";
  return asks->size() == 1 ? std::string_view("other device") : together;
}

// Answers for the nodes of one kind. For a pod of one slice without named devices the engine's index knows
// which nodes can serve: a byte each, instead of the rules over each device. The index does not know which
// room is kept for nominated pods.
void Books::filter_kind(PodBook& pod, std::span<const NodeBook* const> nodes, unsigned kind,
                        std::span<std::string_view> out) {
  std::span<const uint8_t> scores;
  const std::vector<ContainerAsk>* asks = nullptr;
  bool is_new = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] == nullptr || number_of(nodes[i]->state->kind) != kind) continue;
    if (std::exchange(is_new, false)) {
      asks = asks_on(pod, *nodes[i]);
      if (asks != nullptr && is_simple(*asks)) scores = engine_->scores(class_of(asks->front()));
    }
    if (scores.empty() || !nodes[i]->nominated.empty())
      out[i] = refusal_now(pod, *nodes[i]);
    else if (scores[*nodes[i]->number] != 0)
      out[i] = {};
    else
      out[i] = place::broken_rule(engine_->fleet(), *nodes[i]->number, asks->front().shape);
  }
}

std::vector<std::string_view> Books::filter(const std::string& uid, std::span<const std::string_view> names) {
  std::vector<std::string_view> out(names.size(), unknown_pod);
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.asked == nullptr) return out;
  PodBook& pod = found->second;
  if (pod.slices) {
    for (size_t i = 0; i < names.size(); ++i)
      out[i] = pod.slices->node == names[i] ? std::string_view() : bound_elsewhere;
    return out;
  }
  std::vector<const NodeBook*> nodes(names.size(), nullptr);  // Those that can serve some pod.
  std::bitset<node_kinds> kinds;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto node = nodes_.find(names[i]);
    out[i] = no_agent;
    if (node == nodes_.end() || !node->second.number || !node->second.state) continue;
    nodes[i] = &node->second;
    kinds.set(number_of(node->second.state->kind));
  }
  for (unsigned kind = 0; kind < node_kinds; ++kind)
    if (kinds.test(kind)) filter_kind(pod, nodes, kind, out);
  return out;
}

std::vector<uint8_t> Books::prioritize(const std::string& uid, std::span<const std::string_view> nodes) {
  std::vector<uint8_t> out(nodes.size(), 0);
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || pod->second.asked == nullptr) return out;
  const place::Application application = engine_->application(pod->second.application);
  std::vector<uint8_t> bytes(nodes.size(), 0);
  struct OfKind {
    std::optional<place::Assignment> found;
    std::vector<uint8_t> scores;
  };
  std::map<unsigned, OfKind> kinds;
  std::optional<size_t> best;
  bool is_best_chosen = false;  // By the engine, over all nodes of its kind.
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto node = nodes_.find(nodes[i]);
    if (node == nodes_.end() || !node->second.number) continue;
    const auto* const asks = asks_on(pod->second, node->second);
    if (asks == nullptr || asks->empty()) continue;
    const auto [kind, is_new] = kinds.try_emplace(number_of(node->second.state->kind));
    OfKind& known = kind->second;
    if (is_new) {
      const place::RequestClass k = class_of(asks->front());
      known.found = engine_->find(k, application);
      const auto scores = engine_->scores(k);
      known.scores.assign(scores.begin(), scores.end());
    }
    bytes[i] = known.scores[*node->second.number];
    if (bytes[i] == 0) continue;
    const bool is_chosen = known.found && known.found->node == *node->second.number;
    if (!best || std::pair(is_chosen, bytes[i]) > std::pair(is_best_chosen, bytes[*best]))
      best = i, is_best_chosen = is_chosen;
  }
  for (size_t i = 0; i < nodes.size(); ++i)
    out[i] = static_cast<uint8_t>(bytes[i] * (best_score - 1) / UINT8_MAX);
  if (best) out[*best] = best_score;
  return out;
}

Result<kube::PodSlices, std::string> Books::reserve(const std::string& uid, const std::string& node_name) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.asked == nullptr)
    return tl::unexpected(fmt::format("pod {}: {}", uid, unknown_pod));
  PodBook& pod = found->second;
  if (pod.slices && pod.slices->node == node_name) return *pod.slices;
  if (pod.slices)
    return tl::unexpected(fmt::format("pod {} {} to node {}", pod.full_name,
                                      pod.is_reserved ? "is being bound" : "is bound", pod.slices->node));
  const auto node = nodes_.find(node_name);
  const std::string_view why = node == nodes_.end() ? no_agent : refusal_now(pod, node->second);
  if (!why.empty())
    return tl::unexpected(
        fmt::format("pod {} does not fit on node {} any more: {}", pod.full_name, node_name, why));
  std::optional<std::vector<Choice>> chosen;
  {
    Supposition supposition(*this);
    place_nominated(supposition, pod, node->second);
    chosen = choices(pod, node->second);
  }
  invariant(chosen.has_value(), "a pod without a refusal fits");
  const kube::PodSlices slices = slices_of(*chosen, node->second);
  for (const Choice& choice : *chosen) engine_->count_arrival(choice.ask->shape);
  forget_nomination(uid);
  book(pod, slices);
  pod.is_reserved = true;
  return slices;
}

kube::PodSlices Books::slices_of(std::span<const Choice> chosen, const NodeBook& node) const {
  kube::PodSlices out{.node = node.name, .containers = {}};
  for (const Choice& choice : chosen)
    out.containers[choice.container] = slice_of(*choice.ask, *node.state, choice.assignment);
  return out;
}

void Books::release(const std::string& uid) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end() || !pod->second.is_reserved) return;
  unbook(pod->second);
  if (!pod->second.is_known) pods_.erase(pod);
}

// Returns what each device of the node lacks for the largest container.
std::string Books::lacks(PodBook& pod, const NodeBook& node) {
  const auto* const asks = asks_on(pod, node);
  if (asks == nullptr || asks->empty()) return "";
  const place::Fleet& fleet = engine_->fleet();
  const place::RequestShape& shape = asks->front().shape;
  std::string out;
  for (unsigned i = 0; i < node.state->devices.size(); ++i) {
    const place::DeviceState& state = fleet.devices(*node.number)[i];
    for (const place::DeviceRule& rule : place::device_rules()) {
      if (rule.holds(state, fleet.node(*node.number).first + i, shape)) continue;
      out += fmt::format("{}device {}: {}", out.empty() ? "" : "; ", i,
                         rule.otherwise(state, shape, {node.state->devices[i].trouble, ""}));
      break;
    }
  }
  return out;
}

// Returns which smaller request would fit, and where.
std::string Books::what_would_fit(const place::RequestShape& shape) const {
  const place::Refusal refused = place::explain(engine_->fleet(), shape);
  std::string out;
  for (const place::Refusal::Nearest& near : refused.nearest) {
    const auto node =
        std::ranges::find_if(nodes_, [&](const auto& entry) { return entry.second.number == near.node; });
    if (node == nodes_.end()) continue;
    if (near.memory)
      out += fmt::format(". With {} less{} it fits on {}", text(minus(shape.memory, *near.memory)).c_str(),
                         shape.devices > 1 ? " on each device" : "", node->first);
    if (near.share)
      out += fmt::format(". With at most {} of the compute it fits on {}", text(*near.share).c_str(),
                         node->first);
  }
  return out;
}

// Returns the pod that would make room if it moved, NAMESPACE/NAME; empty: no single one does. Pods of
// several slices stay, because they are on one node.
std::string Books::migration_for(const PodBook& asking, const ContainerAsk& ask,
                                 std::span<NodeBook* const> nodes) {
  std::map<std::string_view, const PodBook*> in_order;  // Equal books make equal proposals.
  for (const NodeBook* const node : nodes)
    for (const std::string& uid : node->pods) {
      const PodBook& pod = pods_.find(uid)->second;
      if (pod.counted.size() == 1 && pod.slices->containers.size() == 1 && !pod.is_deleting &&
          !pod.is_reserved && !pod.change && in_order.size() < max_migration_candidates)
        in_order.emplace(pod.full_name, &pod);
    }
  std::vector<place::PlacedRequest> standing;
  std::vector<std::string_view> names;
  for (const auto& [name, pod] : in_order) {
    const PodBook::Counted& counted = pod->counted.front();
    standing.push_back({counted.request_class, counted.assignment, counted.application});
    names.push_back(name);
  }
  const auto migration =
      place::propose_migration(*engine_, class_of(ask), standing, engine_->application(asking.application));
  return migration ? std::string(names[migration->who]) : "";
}

std::vector<std::string_view> Books::node_names() const {
  std::vector<std::string_view> out;
  for (const auto& [name, node] : nodes_) out.push_back(name);
  return out;
}

bool Books::fits_somewhere(const std::string& uid) { return fits_somewhere(uid, node_names()); }

bool Books::fits_somewhere(const std::string& uid, std::span<const std::string_view> nodes) {
  return std::ranges::any_of(filter(uid, nodes), &std::string_view::empty);
}

std::string Books::explain(const std::string& uid) { return explain(uid, node_names()); }

std::string Books::explain(const std::string& uid, std::span<const std::string_view> names) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.asked == nullptr) return std::string(unknown_pod);
  PodBook& pod = found->second;
  std::map<std::string_view, size_t> counts;
  size_t serving = 0;
  std::map<std::string_view, NodeBook*> in_order;
  for (const std::string_view name : names)
    if (const auto node = nodes_.find(name); node != nodes_.end()) in_order.emplace(name, &node->second);
  std::vector<std::pair<uint64_t, NodeBook*>> by_room;  // The largest free block of each node, and the node.
  for (const auto& [name, node] : in_order) {
    const std::string_view why = refusal_now(pod, *node);
    serving += why.empty();
    if (why.empty()) continue;
    ++counts[why];
    if (!node->number || asks_on(pod, *node) == nullptr) continue;
    uint64_t free = 0;
    for (const place::DeviceState& device : engine_->fleet().devices(*node->number))
      if (!device.sick && !device.exclusive) free = std::max(free, device.free.count);
    by_room.emplace_back(free, node);
  }
  std::ranges::stable_sort(by_room, std::greater{}, &std::pair<uint64_t, NodeBook*>::first);
  std::string out = fmt::format("{}/{} nodes can serve", serving, in_order.size());
  std::vector<std::pair<std::string_view, size_t>> rows(counts.begin(), counts.end());
  std::ranges::stable_sort(rows, std::greater{}, &std::pair<std::string_view, size_t>::second);
  for (size_t i = 0; i < rows.size(); ++i)
    out += fmt::format("{}{} {}", i == 0 ? ": " : ", ", rows[i].second, rows[i].first);
  if (serving != 0 || by_room.empty()) return out;
  NodeBook& nearest = *by_room.front().second;
  if (const std::string why = lacks(pod, nearest); !why.empty())
    out += fmt::format(". Nearest {}: {}", nearest.name, why);
  if (in_order.size() < nodes_.size()) return out;  // It may name one of the other nodes.
  const std::vector<ContainerAsk>& asks = *asks_on(pod, nearest);
  const std::string advice = what_would_fit(asks.front().shape);
  out += advice;
  if (asks.size() != 1 || !asks.front().devices.empty()) return out;
  std::vector<NodeBook*> nodes;
  for (size_t i = 0; i < std::min(max_migration_nodes, by_room.size()); ++i)
    nodes.push_back(by_room[i].second);
  if (const std::string mover = migration_for(pod, asks.front(), nodes); !mover.empty())
    out += fmt::format("{} migration of {} would make room", advice.empty() ? ". A" : "; a", mover);
  return out;
}

}  // namespace carve::cluster
