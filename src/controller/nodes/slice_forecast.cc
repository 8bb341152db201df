#include "controller/nodes/slice_forecast.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "controller/nodes/node_rules.h"
#include "core/invariant.h"
#include "objects/rules/service_terms.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

constexpr std::string_view exclusive_mode = "exclusive", none_mode = "none", memory_mode = "memory";

// Returns whether a node of this mode offers what the request names.
bool suits(std::string_view mode, const Amounts& request) {
  if (request.exclusive) return true;
  if (mode == exclusive_mode) return false;
  const auto isolation = request.isolation;
  if (mode == none_mode)
    return !request.has_share() && isolation.value_or(Isolation::none) == Isolation::none;
  if (mode == memory_mode)
    return !request.has_share() && isolation.value_or(Isolation::memory) == Isolation::memory;
  return isolation != Isolation::none;
}

constexpr std::string_view refuse_word = "refuse";  // Value of a pool's bestEffort.

std::string named_in(const Amounts& request) {
  if (request.isolation) return fmt::format("isolation {}", text(*request.isolation));
  return request.has_share() ? "a share of compute" : "a part of a device";
}

place::DeviceSnapshot snapshot_of(const objects::NodeDeviceStatus& device, bool contexts_in_slice) {
  place::DeviceSnapshot out;
  out.device.index = device.index;
  if (const auto uuid = parse_uuid(device.uuid)) out.device.uuid = *uuid;
  out.device.name = device.name;
  out.device.native = Bytes{device.usable_bytes};  // Only the usable bytes count, whatever the total is.
  out.free = Bytes{device.free_bytes};
  out.free_share = Share{device.free_share_bp};
  out.context = Bytes{contexts_in_slice ? device.context_bytes : 0};
  out.slices = device.slices;
  out.isolated = device.isolated_slices;
  out.exclusive = !device.exclusive_to.empty();
  out.policy = parse<Policy>(device.policy);
  out.trouble = device.health.reason;
  return out;
}

uint64_t free_bytes(const std::vector<place::DeviceSnapshot>& devices) {
  return std::accumulate(
      devices.begin(), devices.end(), uint64_t{0},
      [](uint64_t sum, const place::DeviceSnapshot& device) { return sum + device.free.count; });
}

// Under native-burst-share a share is a weight, which uses up no promised compute.
bool is_weight(const Amounts& request, const place::DeviceSnapshot& device) {
  return request.policy.value_or(device.policy.value_or(Policy::fixed_share)) == Policy::native_burst_share;
}

}  // namespace

std::optional<Isolation> isolation_of(const Object& node) {
  const std::string& mode = node_status(node).mode.effective;
  if (mode == none_mode) return Isolation::none;
  return mode == memory_mode ? std::optional(Isolation::memory) : std::nullopt;
}

bool is_best_effort(const Amounts& request) { return !request.exclusive && !request.has_share(); }

std::string best_effort_problem(const std::string& pool) {
  return fmt::format(
      "pool {} refuses slices without a share of compute (bestEffort: refuse); add a share, such as 30%",
      pool);
}

SliceForecast::SliceForecast(const ObjectRegistry& objects) {
  for (const Pointer& pool : objects.list(objects::Kind::pool))
    pools_.emplace(pool->key.name, pool_spec(*pool).best_effort == refuse_word);
  for (const Pointer& node : objects.list(objects::Kind::node)) {
    Node& added = nodes_.emplace_back(node_of(*node));
    const auto pool = pools_.find(added.pool);
    added.pool_refuses_best_effort = pool != pools_.end() && pool->second;
  }
}

SliceForecast::Node SliceForecast::node_of(const Object& object) {
  const objects::NodeStatus& status = node_status(object);
  Node out{.name = object.key.name,
           .pool = node_spec(object).pool,
           .mode = status.mode.effective,
           .is_open = status.state == NodePhase::running && refusal_of(object).empty(),
           .spreads = status.placement == "spread",
           .has_policy_per_slice = status.has_policy_per_slice,
           .admits_best_effort = status.admits_best_effort,
           .isolation = isolation_of(object),
           .taints = taints_of(object),
           .unit = parse<MemoryUnit>(status.memory_unit.effective).value_or(MemoryUnit::gib),
           .devices = {},
           .host = {.cpu_milli = status.cpu_milli, .memory_bytes = status.memory_bytes},
           .host_requested = {}};
  for (const objects::NodeDeviceStatus& device : status.devices)
    out.devices.push_back(snapshot_of(device, status.contexts_in_slice));
  return out;
}

// Returns why the node is never a candidate, as a message about it; empty if its mode, taints and pool allow
// it.
std::string SliceForecast::objection(const Node& node, const Tolerations& tolerations,
                                     const Amounts& request) {
  if (const workload::Taint* taint = workload::effect_of(node.taints, tolerations).repels)
    return fmt::format("node {} has the taint {}={}:{}", node.name, taint->key, taint->value, taint->effect);
  if (!suits(node.mode, request)) return fmt::format("node {} has mode {}", node.name, node.mode);
  if (node.pool_refuses_best_effort && is_best_effort(request))
    return fmt::format("pool {} of node {} refuses slices without a share", node.pool, node.name);
  return "";
}

void SliceForecast::count_replicas(const ObjectRegistry& registry) {
  for (const Pointer& object : registry.workloads()) {
    const auto& replicas = object->status.as<objects::ServiceStatus>().replica_list;
    if (replicas.empty()) continue;
    const workload::HostResources request = host_request(service_form(*object));
    for (const objects::ReplicaStatus& replica : replicas)
      if (const auto node = std::ranges::find(nodes_, replica.node, &Node::name); node != nodes_.end())
        node->host_requested += request;
  }
}

Outcome<std::vector<const SliceForecast::Node*>> SliceForecast::candidates(const NodeChoice& choice,
                                                                           const Amounts& request) const {
  const std::string& pool = choice.pool;
  if (!pool.empty() && !pools_.contains(pool))
    return failure(FailureKind::failed_precondition, "spec.pool: there is no pool '{}'", pool);
  const Tolerations tolerations = objects::tolerations_of(choice.tolerations);
  std::vector<const Node*> out;
  std::vector<std::string> objections;
  bool is_by_mode = true;
  for (const Node& node : nodes_) {
    if (!node.is_open || (!pool.empty() && node.pool != pool)) continue;
    std::string why = objection(node, tolerations, request);
    if (why.empty()) {
      out.push_back(&node);
      continue;
    }
    is_by_mode &= !suits(node.mode, request);
    objections.push_back(std::move(why));
  }
  if (out.empty() && !objections.empty() && is_by_mode)
    return failure(FailureKind::failed_precondition,
                   "no node's mode provides {}: {}; set another mode with carve label node",
                   named_in(request), fmt::join(objections, ", "));
  if (out.empty() && !objections.empty())
    return failure(FailureKind::failed_precondition, "no node accepts it: {}", fmt::join(objections, ", "));
  if (out.empty())
    return failure(FailureKind::unavailable,
                   "no node{} runs and grants slices now; carve get nodes shows their states",
                   pool.empty() ? "" : " of pool " + pool);
  std::ranges::stable_sort(out, [&](const Node* a, const Node* b) {
    const bool avoids_a = workload::effect_of(a->taints, tolerations).avoids;
    const bool avoids_b = workload::effect_of(b->taints, tolerations).avoids;
    if (avoids_a != avoids_b) return avoids_b;
    if (a->spreads != b->spreads) return b->spreads;
    const uint64_t free_of_a = free_bytes(a->devices), free_of_b = free_bytes(b->devices);
    return a->spreads ? free_of_a > free_of_b : free_of_a < free_of_b;
  });
  return out;
}

// Returns the agent's answer to the request, as the node reads it (node/api/requests.h).
Outcome<place::Answer> SliceForecast::answer_of(const Node& node, const Amounts& wanted) {
  Outcome<Request> request = request_of(wanted, node.unit);
  if (!request) return tl::unexpected(request.error());
  if (!request->isolation && !request->exclusive) request->isolation = node.isolation;
  const auto valid = validated(std::move(*request));
  if (!valid) return tl::unexpected(valid.error());
  std::vector<place::DeviceSnapshot> devices = node.devices;
  for (place::DeviceSnapshot& device : devices) {
    device.shared_out = !node.admits_best_effort && device.free_share < whole_device && !device.exclusive;
    if (is_weight(wanted, device)) device.free_share = whole_device;
    if (node.has_policy_per_slice) device.policy.reset();
  }
  return place::place(devices, *valid, node.spreads ? Strategy::spread : Strategy::binpack);
}

Outcome<std::vector<std::string>> SliceForecast::nodes_to_ask(const NodeChoice& choice,
                                                              const Amounts& request) const {
  auto found = candidates(choice, request);
  if (!found) return tl::unexpected(found.error());
  std::ranges::stable_partition(*found, [&](const Node* node) {
    const auto answer = answer_of(*node, request);
    return answer && answer->placement;
  });
  std::vector<std::string> out;
  for (const Node* node : *found) out.push_back(node->name);
  return out;
}

void SliceForecast::take(Node& node, const Amounts& request, const place::Placement& placement) {
  for (const place::PlacementPart& part : placement.parts) {
    place::DeviceSnapshot& device = node.devices[part.device];
    invariant(device.free >= part.memory, "a placement fits");
    device.free.count -= part.memory.count;
    if (!is_weight(request, device))
      device.free_share.basis_points -= std::min(part.share.basis_points, device.free_share.basis_points);
    ++device.slices;
    device.isolated +=
        request.isolation.value_or(node.isolation.value_or(Isolation::memory)) != Isolation::none;
    device.exclusive |= request.exclusive;
  }
}

void SliceForecast::replace_slices(const std::string& name, const std::vector<LivingSlice>& slices) {
  const auto node = std::ranges::find(nodes_, name, &Node::name);
  if (node == nodes_.end()) return;
  for (place::DeviceSnapshot& device : node->devices) {
    device.free = device.device.native;
    device.free_share = whole_device;
    device.slices = device.isolated = 0;
    device.exclusive = false;
    const std::string uuid(text(device.device.uuid));
    for (const LivingSlice& slice : slices) {
      const auto part = std::ranges::find(slice.parts, uuid, &LivingSlice::Part::device);
      if (part == slice.parts.end()) continue;
      device.free = minus(device.free, Bytes{slice.is_exclusive ? device.free.count : part->memory_bytes});
      device.free_share.basis_points -= std::min(part->share_bp, device.free_share.basis_points);
      ++device.slices;
      ++device.isolated;
      device.exclusive |= slice.is_exclusive;
    }
    if (device.slices == 0) device.policy.reset();
  }
}

void SliceForecast::set_host_requested(const std::string& name, const workload::HostResources& requested) {
  const auto node = std::ranges::find(nodes_, name, &Node::name);
  if (node != nodes_.end()) node->host_requested = requested;
}

SliceForecast SliceForecast::emptied() const {
  SliceForecast out = *this;
  std::erase_if(out.nodes_, [](const Node& node) { return node.devices.empty(); });
  for (Node& node : out.nodes_) {
    node.is_open = true;
    node.mode.clear();
    node.isolation.reset();
    node.taints.clear();
    node.pool_refuses_best_effort = false;
    node.host_requested = {};
    for (place::DeviceSnapshot& device : node.devices) {
      device.free = device.device.native;
      device.free_share = whole_device;
      device.slices = device.isolated = 0;
      device.exclusive = false;
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
    for (const place::DeviceSnapshot& device : node.devices) {
      out.memory_bytes += device.device.native.count;
      out.compute_bp += whole_device.basis_points;
      out.largest_device_bytes = std::max(out.largest_device_bytes, device.device.native.count);
      out.context_bytes = std::max(out.context_bytes, device.context.count);
    }
  }
  return out;
}

std::optional<ForecastPlace> SliceForecast::place_of(const std::string& name,
                                                     const std::string& devices) const {
  const auto node = std::ranges::find(nodes_, name, &Node::name);
  if (node == nodes_.end()) return std::nullopt;
  ForecastPlace out{.node = name, .devices = {}};
  std::istringstream words(devices);
  for (std::string uuid; words >> uuid;)
    for (const place::DeviceSnapshot& device : node->devices)
      if (std::string(text(device.device.uuid)) == uuid) out.devices.push_back(device.device.index);
  return out;
}

bool SliceForecast::take_at(const ForecastPlace& place, const Amounts& request) {
  const auto node = std::ranges::find(nodes_, place.node, &Node::name);
  if (node == nodes_.end()) return false;
  const auto wanted_there = request_of(request, node->unit);
  if (!wanted_there) return false;
  place::Placement wanted;
  for (const uint32_t index : place.devices) {
    const auto device = std::ranges::find(node->devices, index,
                                          [](const place::DeviceSnapshot& d) { return d.device.index; });
    if (device == node->devices.end() || device->exclusive || wanted.parts.size() == wanted_there->devices)
      return false;
    place::PlacementPart part{.memory = need(*wanted_there, wanted.parts.size(), device->device),
                              .share = share_of(*wanted_there, wanted.parts.size())};
    if (request.exclusive ? device->slices != 0
                          : device->free < part.memory || device->free_share < part.share)
      return false;
    if (request.exclusive) part.memory = device->free;
    part.device = static_cast<size_t>(device - node->devices.begin());
    wanted.parts.push_back(part);
  }
  take(*node, request, wanted);
  return true;
}

void SliceForecast::release_at(const ForecastPlace& place, const Amounts& request) {
  const auto node = std::ranges::find(nodes_, place.node, &Node::name);
  if (node == nodes_.end()) return;
  const auto held = request_of(request, node->unit);
  if (!held) return;
  for (place::DeviceSnapshot& device : node->devices) {
    const auto at = std::ranges::find(place.devices, device.device.index);
    const auto part = static_cast<size_t>(at - place.devices.begin());
    if (part >= std::min<size_t>(place.devices.size(), held->devices)) continue;
    device.free.count += need(*held, part, device.device).count;
    device.free = std::min(device.free, device.device.native);
    device.free_share.basis_points = std::min(
        device.free_share.basis_points + share_of(*held, part).basis_points, whole_device.basis_points);
    device.slices -= std::min<unsigned>(device.slices, 1);
    device.isolated -= std::min<unsigned>(device.isolated, 1);
    device.exclusive &= !request.exclusive;
  }
}

Outcome<ForecastPlace> SliceForecast::place(const NodeChoice& choice, const Amounts& request,
                                            const workload::HostResources& host) {
  const auto order = candidates(choice, request);
  if (!order) return tl::unexpected(order.error());
  std::vector<std::string> lacking;
  for (const Node* candidate : *order) {
    const auto answer = answer_of(*candidate, request);
    if (!answer) return tl::unexpected(answer.error());
    if (!answer->placement) {
      lacking.push_back(fmt::format("node {}: {}", candidate->name, answer->summary));
      continue;
    }
    Node& node = *std::ranges::find(nodes_, candidate->name, &Node::name);
    if (const std::string problem = workload::host_problem(host, node.host, node.host_requested);
        !problem.empty()) {
      lacking.push_back(fmt::format("node {}: {}", candidate->name, problem));
      continue;
    }
    take(node, request, *answer->placement);
    node.host_requested += host;
    ForecastPlace out{.node = node.name, .devices = {}};
    for (const place::PlacementPart& part : answer->placement->parts) {
      out.devices.push_back(node.devices[part.device].device.index);
      out.memory.push_back(part.memory);
    }
    return out;
  }
  return failure(FailureKind::insufficient_capacity, "{}", fmt::join(lacking, "; "));
}

}  // namespace carve::controller
