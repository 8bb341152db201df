#include "controller/nodes/slice_forecast.h"

#include <algorithm>
#include <functional>
#include <sstream>

#include "controller/nodes/node_rules.h"
#include "core/invariant.h"
#include "fleet/answered_node.h"
#include "fleet/choice.h"
#include "fleet/refusals.h"
#include "objects/rules/service_terms.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

// The strategy that chooses the node. It is also the default of Kubernetes' coordinator.
constexpr Strategy node_strategy = Strategy::binpack;

std::string named_in(const Amounts& request) {
  if (request.isolation) return fmt::format("isolation {}", text(*request.isolation));
  return request.has_share() ? "a share of compute" : "a part of a device";
}

uint32_t free_cpu(const fleet::GpuNode& node, const workload::HostResources& requested) {
  if (node.cpu_milli == 0) return UINT32_MAX;
  return static_cast<uint32_t>(
      std::min<uint64_t>(node.cpu_milli - std::min(requested.cpu_milli, node.cpu_milli), UINT32_MAX));
}

Bytes free_memory(const fleet::GpuNode& node, const workload::HostResources& requested) {
  if (node.memory.count == 0) return {UINT64_MAX};
  return minus(node.memory, Bytes{requested.memory_bytes});
}

// Returns the slice's part on a device.
fleet::HeldPart held_part(const Request& request, size_t part, const fleet::GpuDevice& device, Bytes memory) {
  return {.memory = request.exclusive ? device.usable : memory,
          .share = share_of(request, part),
          .isolation = request.isolated(),
          .policy = request.policy.value_or(device.policy.value_or(Policy::fixed_share)),
          .is_exclusive = request.exclusive};
}

Bytes needed(const Request& request, size_t part, const fleet::GpuDevice& device) {
  return need(request, part, {.uuid = {}, .index = 0, .name = {}, .native = device.usable, .reserved = {}});
}

}  // namespace

std::optional<Isolation> isolation_of(const Object& node) {
  const auto mode = parse<NodeMode>(node_status(node).mode.effective);
  if (mode == NodeMode::none) return Isolation::none;
  return mode == NodeMode::memory ? std::optional(Isolation::memory) : std::nullopt;
}

bool is_best_effort(const Amounts& request) { return !request.exclusive && !request.has_share(); }

std::string best_effort_problem(const std::string& pool) {
  return fmt::format(
      "pool {} refuses slices without a share of compute (bestEffort: refuse); add a share, such as 30%",
      pool);
}

SliceForecast::SliceForecast(const ObjectRegistry& objects) {
  for (const Pointer& pool : objects.list(objects::Kind::pool))
    pools_.emplace(pool->key.name, pool_spec(*pool).best_effort == BestEffortRule::refuse);
  for (const Pointer& node : objects.list(objects::Kind::node)) {
    Node& added = nodes_.emplace_back(node_of(*node));
    const auto pool = pools_.find(added.pool);
    added.pool_refuses_best_effort = pool != pools_.end() && pool->second;
  }
}

SliceForecast::Node SliceForecast::node_of(const Object& object) {
  const objects::NodeStatus& status = node_status(object);
  Node out{.gpu = {.name = object.key.name},
           .uses = {},
           .pool = node_spec(object).pool,
           .is_open = status.state == NodePhase::running && refusal_of(object).empty(),
           .taints = taints_of(object),
           .host_requested = {}};
  if (auto read = fleet::read_node(object.key.name, object.labels, status)) {
    out.gpu = std::move(*read);
    out.uses = fleet::device_uses(status);
  }
  return out;
}

SliceForecast::Node* SliceForecast::find(const std::string& name) {
  const auto found = std::ranges::find(nodes_, name, [](const Node& node) { return node.gpu.name; });
  return found == nodes_.end() ? nullptr : &*found;
}

place::Engine& SliceForecast::engine() {
  if (engine_.engine == nullptr) {
    engine_.engine = std::make_unique<place::Engine>(node_strategy);
    for (Node& node : nodes_) {
      const auto joined = fleet::join(engine_.engine->fleet(), node.gpu);
      node.number = joined ? *joined : std::nullopt;
      update_engine(node);
    }
  }
  return *engine_.engine;
}

void SliceForecast::update_engine(const Node& node) {
  if (engine_.engine == nullptr || !node.number) return;
  place::Fleet& fleet = engine_.engine->fleet();
  fleet::set_uses(fleet, *node.number, node.gpu, node.uses);
  fleet.set_host(*node.number, free_cpu(node.gpu, node.host_requested),
                 free_memory(node.gpu, node.host_requested));
}

SliceForecast::KindRequests SliceForecast::requests_on_kinds(const Amounts& amounts,
                                                             const workload::HostResources& host) {
  KindRequests out;
  for (const Node& node : nodes_) {
    const auto [entry, is_new] = out.try_emplace(number_of(node.gpu.kind), tl::unexpected(fleet::Refusal()));
    if (!is_new) continue;
    auto request = fleet::request_on(amounts, node.gpu.kind);
    if (!request) {
      entry->second = tl::unexpected(std::move(request.error()));
      continue;
    }
    place::RequestShape shape = fleet::shape_on(*request, node.gpu.kind, engine().fleet());
    shape.cpu_milli = static_cast<uint32_t>(std::min<uint64_t>(host.cpu_milli, UINT32_MAX));
    shape.host_memory = {host.memory_bytes};
    entry->second = KindRequest{std::move(*request), std::move(shape)};
  }
  return out;
}

// Returns why the node is never a candidate, as a message about it; empty if its mode, taints and pool allow
// it.
std::string SliceForecast::objection(const Node& node, const Tolerations& tolerations, const Amounts& amounts,
                                     const Result<KindRequest, fleet::Refusal>& request) {
  const std::string& name = node.gpu.name;
  if (const workload::Taint* taint = workload::effect_of(node.taints, tolerations).repels)
    return fmt::format("node {} has the taint {}={}:{}", name, taint->key, taint->value,
                       carve::text(taint->effect));
  if (!request && request.error().rule == fleet::other_mode)
    return fmt::format("node {}: {}", name, request.error().message);
  if (node.pool_refuses_best_effort && is_best_effort(amounts))
    return fmt::format("pool {} of node {} refuses slices without a share", node.pool, name);
  return "";
}

void SliceForecast::count_replicas(const ObjectRegistry& registry) {
  for (const Pointer& object : registry.workloads()) {
    const auto& replicas = object->status.as<objects::ServiceStatus>().replica_list;
    if (replicas.empty()) continue;
    const workload::HostResources request = host_request(service_form(*object));
    for (const objects::ReplicaStatus& replica : replicas)
      if (Node* const node = find(replica.node)) {
        node->host_requested += request;
        update_engine(*node);
      }
  }
}

Outcome<std::vector<SliceForecast::Candidate>> SliceForecast::candidates(const NodeChoice& choice,
                                                                         const Amounts& amounts,
                                                                         const KindRequests& requests) {
  const std::string& pool = choice.pool;
  if (!pool.empty() && !pools_.contains(pool))
    return failure(FailureKind::failed_precondition, "spec.pool: there is no pool '{}'", pool);
  const Tolerations tolerations = objects::tolerations_of(choice.tolerations);
  std::vector<Candidate> out;
  std::vector<std::string> objections;
  bool is_by_mode = true;
  for (Node& node : nodes_) {
    if (!node.is_open || (!pool.empty() && node.pool != pool)) continue;
    const auto& request = requests.at(number_of(node.gpu.kind));
    std::string why = objection(node, tolerations, amounts, request);
    if (why.empty()) {
      out.push_back({&node, &request, workload::effect_of(node.taints, tolerations).avoids});
      continue;
    }
    is_by_mode &= !request && request.error().rule == fleet::other_mode;
    objections.push_back(std::move(why));
  }
  if (out.empty() && !objections.empty() && is_by_mode)
    return failure(FailureKind::failed_precondition,
                   "no node's mode provides {}: {}; set another mode with carve label node",
                   named_in(amounts), fmt::join(objections, ", "));
  if (out.empty() && !objections.empty())
    return failure(FailureKind::failed_precondition, "no node accepts the slice: {}",
                   fmt::join(objections, ", "));
  if (out.empty())
    return failure(FailureKind::unavailable,
                   "no node{} runs and grants slices now; carve get nodes shows their states",
                   pool.empty() ? "" : " of pool " + pool);
  std::ranges::stable_partition(out, [](const Candidate& candidate) { return !candidate.is_avoided; });
  return out;
}

// Returns the candidates that can serve the request now, the best first: those that taints avoid come last.
std::vector<size_t> SliceForecast::order(const std::vector<Candidate>& candidates) {
  std::vector<size_t> out;
  for (const bool is_avoided : {false, true}) {
    std::vector<fleet::Candidate> group(candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].is_avoided == is_avoided && *candidates[i].request)
        group[i] = {.number = candidates[i].node->number, .shape = &(*candidates[i].request)->shape};
    const fleet::Ranking ranking = fleet::rank(engine(), group);
    const size_t first = out.size();
    for (size_t i = 0; i < group.size(); ++i)
      if (ranking.scores[i] != 0) out.push_back(i);
    std::ranges::stable_sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), std::greater{},
                             [&](size_t i) { return std::pair(i == ranking.best, ranking.scores[i]); });
  }
  return out;
}

Outcome<std::vector<std::string>> SliceForecast::nodes_to_ask(const NodeChoice& choice,
                                                              const Amounts& amounts) {
  const KindRequests requests = requests_on_kinds(amounts, {});
  const auto found = candidates(choice, amounts, requests);
  if (!found) return tl::unexpected(found.error());
  std::vector<std::string> out;
  std::vector<bool> has_room(found->size(), false);
  for (const size_t i : order(*found)) {
    out.push_back((*found)[i].node->gpu.name);
    has_room[i] = true;
  }
  for (size_t i = 0; i < found->size(); ++i)
    if (!has_room[i]) out.push_back((*found)[i].node->gpu.name);
  return out;
}

void SliceForecast::replace_slices(const std::string& name, const std::vector<LivingSlice>& slices) {
  Node* const node = find(name);
  if (node == nullptr) return;
  for (size_t i = 0; i < node->uses.size(); ++i) {
    const fleet::GpuDevice& device = node->gpu.devices[i];
    const std::string uuid(text(device.uuid));
    node->uses[i] = {};
    for (const LivingSlice& slice : slices) {
      const auto part = std::ranges::find(slice.parts, uuid, &LivingSlice::Part::device);
      if (part == slice.parts.end()) continue;
      const Share share{part->share_bp};
      fleet::add(node->uses[i], {.memory = slice.is_exclusive ? device.usable : Bytes{part->memory_bytes},
                                 .share = share,
                                 .isolation = slice.isolation.value_or(default_isolation(share)),
                                 .policy = slice.policy,
                                 .is_exclusive = slice.is_exclusive});
    }
  }
  update_engine(*node);
}

void SliceForecast::set_host_requested(const std::string& name, const workload::HostResources& requested) {
  Node* const node = find(name);
  if (node == nullptr) return;
  node->host_requested = requested;
  update_engine(*node);
}

SliceForecast SliceForecast::emptied() const {
  SliceForecast out = *this;
  std::erase_if(out.nodes_, [](const Node& node) { return node.gpu.devices.empty(); });
  for (Node& node : out.nodes_) {
    node.is_open = true;
    node.gpu.kind.mode = NodeMode::memory_and_compute;
    node.gpu.kind.policy.reset();
    node.taints.clear();
    node.pool_refuses_best_effort = false;
    node.host_requested = {};
    node.uses.assign(node.gpu.devices.size(), {});
    for (fleet::GpuDevice& device : node.gpu.devices) {
      device.policy.reset();
      device.trouble.clear();
    }
  }
  return out;
}

Outcome<void> check_ever_fits(const ObjectRegistry& registry, const NodeChoice& choice,
                              const Amounts& request, const workload::HostResources& host,
                              const std::string& memory_text) {
  SliceForecast empty = SliceForecast(registry).emptied();
  const auto place = empty.place(choice, request, host);
  if (place || place.error().kind != FailureKind::insufficient_capacity) return {};
  const PoolCapacity capacity = empty.capacity(choice.pool);
  const Bytes most = minus(Bytes{capacity.largest_device_bytes}, Bytes{capacity.context_bytes});
  if (request.memory_bytes.value_or(0) > most.count)
    return failure(FailureKind::failed_precondition,
                   "spec.gpu.memory: '{}': the largest device has {} usable; request at most {}", memory_text,
                   text(Bytes{capacity.largest_device_bytes}), text(most));
  return failure(FailureKind::failed_precondition,
                 "spec: fits on no node, even if all are empty; request less: {}", place.error().message);
}

PoolCapacity SliceForecast::capacity(const std::string& pool) const {
  PoolCapacity out;
  for (const Node& node : nodes_) {
    if (!pool.empty() && node.pool != pool) continue;
    for (const fleet::GpuDevice& device : node.gpu.devices) {
      out.memory_bytes += device.usable.count;
      out.compute_bp += whole_device.basis_points;
      out.largest_device_bytes = std::max(out.largest_device_bytes, device.usable.count);
      out.context_bytes = std::max(out.context_bytes, device.context.count);
    }
  }
  return out;
}

std::optional<ForecastPlace> SliceForecast::place_of(const std::string& name, const std::string& devices) {
  const Node* const node = find(name);
  if (node == nullptr) return std::nullopt;
  ForecastPlace out{.node = name, .devices = {}, .memory = {}};
  std::istringstream words(devices);
  for (std::string uuid; words >> uuid;)
    for (const fleet::GpuDevice& device : node->gpu.devices)
      if (std::string(text(device.uuid)) == uuid) out.devices.push_back(device.index);
  return out;
}

// Returns the request of a slice that the node has. Its mode or policy may be another one since the grant.
std::optional<Request> SliceForecast::held_request(const Node& node, const Amounts& amounts) {
  if (auto request = fleet::request_on(amounts, node.gpu.kind)) return std::move(*request);
  auto other = request_of(amounts, node.gpu.kind.unit);
  return other ? std::optional(std::move(*other)) : std::nullopt;
}

bool SliceForecast::take_at(const ForecastPlace& place, const Amounts& amounts) {
  Node* const node = find(place.node);
  if (node == nullptr) return false;
  const auto request = held_request(*node, amounts);
  if (!request || place.devices.size() > request->devices) return false;
  std::vector<fleet::DeviceUse> uses = node->uses;
  for (size_t part = 0; part < place.devices.size(); ++part) {
    const auto found = std::ranges::find(node->gpu.devices, place.devices[part], &fleet::GpuDevice::index);
    if (found == node->gpu.devices.end()) return false;
    const fleet::GpuDevice& device = *found;
    fleet::DeviceUse& use = uses[static_cast<size_t>(found - node->gpu.devices.begin())];
    if (use.is_exclusive || (request->exclusive && use.slices != 0)) return false;
    fleet::add(use, held_part(*request, part, device, needed(*request, part, device)));
    if (use.memory > device.usable || use.promised > whole_device) return false;
  }
  node->uses = std::move(uses);
  update_engine(*node);
  return true;
}

void SliceForecast::release_at(const ForecastPlace& place, const Amounts& amounts) {
  Node* const node = find(place.node);
  if (node == nullptr) return;
  const auto request = held_request(*node, amounts);
  if (!request) return;
  for (size_t i = 0; i < node->gpu.devices.size(); ++i) {
    const fleet::GpuDevice& device = node->gpu.devices[i];
    const auto at = std::ranges::find(place.devices, device.index);
    const auto part = static_cast<size_t>(at - place.devices.begin());
    if (part >= std::min<size_t>(place.devices.size(), request->devices)) continue;
    fleet::remove(node->uses[i], held_part(*request, part, device, needed(*request, part, device)));
  }
  update_engine(*node);
}

fleet::Refusal SliceForecast::refusal_on(const Candidate& candidate) {
  const auto& request = *candidate.request;
  if (!request) return request.error();
  const Node& node = *candidate.node;
  return fleet::refusal_on(engine().fleet(), node.number, node.gpu, node.uses, request->request,
                           request->shape);
}

Outcome<ForecastPlace> SliceForecast::place(const NodeChoice& choice, const Amounts& amounts,
                                            const workload::HostResources& host) {
  const KindRequests requests = requests_on_kinds(amounts, host);
  const auto found = candidates(choice, amounts, requests);
  if (!found) return tl::unexpected(found.error());
  const std::vector<size_t> serving = order(*found);
  if (serving.empty()) {
    std::vector<std::string> lacking;
    bool is_invalid = true;
    for (const Candidate& candidate : *found) {
      const fleet::Refusal why = refusal_on(candidate);
      is_invalid &= why.rule == fleet::invalid_request;
      lacking.push_back(fmt::format("node {}: {}{}{}", candidate.node->gpu.name, why.message,
                                    why.advice.empty() ? "" : "; ", why.advice));
    }
    if (is_invalid) return failure(FailureKind::invalid_argument, "{}", refusal_on(found->front()).message);
    return failure(FailureKind::insufficient_capacity, "{}", fmt::join(lacking, "; "));
  }
  const Candidate& best = (*found)[serving.front()];
  Node& node = *best.node;
  const KindRequest& chosen = **best.request;
  const auto assignment =
      engine().find_on(engine().request_class(chosen.shape), *node.number, place::no_application,
                       fleet::strategy_on(chosen.request.strategy, node.gpu));
  invariant(assignment.has_value(), "a node with a score can serve");
  ForecastPlace out{.node = node.gpu.name, .devices = {}, .memory = {}};
  for (const place::PartPlace& part : assignment->places()) {
    const fleet::GpuDevice& device = node.gpu.devices[part.device];
    fleet::add(node.uses[part.device], held_part(chosen.request, out.devices.size(), device, part.memory));
    out.devices.push_back(device.index);
    out.memory.push_back(part.memory);
  }
  node.host_requested += host;
  update_engine(node);
  return out;
}

}  // namespace carve::controller
