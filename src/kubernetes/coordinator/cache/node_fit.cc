#include "kubernetes/coordinator/cache/node_fit.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/invariant.h"
#include "fleet/choice.h"
#include "place/explain.h"
#include "place/rules.h"

namespace carve::kubernetes::coordinator {
namespace {

constexpr std::string_view other_device = "other device";
constexpr std::string_view together = "the containers together";
constexpr std::string_view kept_for_another = "kept for a preempting pod";

kubernetes::PlacedSlice slice_of(const ContainerAsk& ask, const fleet::GpuNode& node,
                                 const place::Assignment& assignment) {
  const Request& request = ask.request;
  kubernetes::PlacedSlice out{
      .isolation = request.isolated(), .policy = *request.policy, .latency_class = request.latency};
  if (request.exclusive) out.exclusive = true;
  if (request.memory_units.count != 0) {
    out.unit = size_of(request.memory_units.unit).count;
    out.units = request.memory_units.count;
  }
  if (request.spill.count != 0) out.spill = request.spill.count;
  for (const place::PartPlace& place : assignment.places()) {
    const fleet::GpuDevice& device = node.devices[place.device];
    const Bytes memory = request.exclusive ? device.usable : place.memory;
    out.parts.push_back({device.uuid, memory, share_of(request, out.parts.size())});
  }
  return out;
}

// Places the containers one after another in a fleet that contains only this node.
std::optional<std::vector<DeviceChoice>> choose_in_turn(const place::Fleet& fleet, const CachedNode& node,
                                                        std::span<const ContainerAsk> asks) {
  const auto states = fleet.devices(*node.number);
  place::Engine alone(fleet::strategy_on(asks.front().strategy, *node.state).value_or(Strategy::binpack));
  for (unsigned i = 0; i < fleet.models(); ++i) alone.fleet().model(fleet.model_name(i));
  const uint32_t here = alone.fleet().add(fleet.node(*node.number), states);
  if (node.state->links) alone.fleet().set_topology(here, *node.state->links);
  std::vector<DeviceChoice> out;
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
    out.push_back({&ask, *found});
    out.back().assignment.node = *node.number;
  }
  return out;
}

int32_t priority_of(const CachedPod& pod) { return pod.priority.value_or(0); }

}  // namespace

const std::vector<ContainerAsk>* asks_on(Cache& cache, const CachedPod& pod, const CachedNode& node) {
  invariant(pod.asked != nullptr && node.state);
  const auto& asks = pod.asked->on(node.state->kind, cache.engine().fleet());
  return asks ? &*asks : nullptr;
}

bool is_simple(const std::vector<ContainerAsk>& asks) {
  return asks.size() == 1 && asks.front().devices.empty();
}

std::optional<std::vector<DeviceChoice>> choose_devices(Cache& cache, const CachedPod& pod,
                                                        const CachedNode& node) {
  if (!node.number) return std::nullopt;
  place::Engine& engine = cache.engine();
  const auto* const asks = asks_on(cache, pod, node);
  if (asks == nullptr || asks->empty()) return std::nullopt;
  if (!is_simple(*asks)) return choose_in_turn(engine.fleet(), node, *asks);
  const ContainerAsk& ask = asks->front();
  const auto found =
      engine.find_on(engine.request_class(ask.shape), *node.number, engine.application(pod.application),
                     fleet::strategy_on(ask.strategy, *node.state));
  if (!found) return std::nullopt;
  return std::vector<DeviceChoice>{{&ask, *found}};
}

kubernetes::PodSlices slices_of(std::span<const DeviceChoice> chosen, const CachedNode& node) {
  kubernetes::PodSlices out{.node = node.name, .containers = {}};
  for (const DeviceChoice& choice : chosen)
    out.containers[choice.ask->container] = slice_of(*choice.ask, *node.state, choice.assignment);
  return out;
}

std::string_view refusal(Cache& cache, const CachedPod& pod, const CachedNode& node) {
  if (!node.state || !node.number) return no_agent;
  const place::Fleet& fleet = cache.engine().fleet();
  const auto& asks = pod.asked->on(node.state->kind, fleet);
  if (!asks) return asks.error().rule;
  if (asks->empty()) return fleet::other_mode;
  for (const ContainerAsk& ask : *asks)
    if (!place::fitting(fleet, *node.number, ask.shape))
      return place::broken_rule(fleet, *node.number, ask.shape);
  if (is_simple(*asks) || choose_in_turn(fleet, node, *asks)) return "";
  return asks->size() == 1 ? other_device : together;
}

// Pods that are being deleted make room for the nominated pods but still count for other pods.
void place_nominated(AssumedPods& assumed, Cache& cache, const CachedPod& asking, const CachedNode& node) {
  if (!node.state || !node.number) return;
  for (const std::string& uid : node.nominated) {
    const CachedPod& pod = *cache.find_pod(uid);
    if (&pod == &asking || pod.slices || priority_of(pod) <= priority_of(asking)) continue;
    std::optional<kubernetes::PodSlices> slices;
    {
      AssumedPods without(cache);
      const std::set<std::string> here = node.pods;
      for (const std::string& each : here)
        if (const CachedPod& other = *cache.find_pod(each); other.is_deleting) without.remove(other);
      if (const auto chosen = choose_devices(cache, pod, node)) slices = slices_of(*chosen, node);
    }
    if (slices) assumed.place(pod, std::move(*slices));
  }
}

std::string_view refusal_with_nominated(Cache& cache, const CachedPod& pod, const CachedNode& node) {
  const std::string_view why = refusal(cache, pod, node);
  if (!why.empty() || node.nominated.empty()) return why;
  AssumedPods assumed(cache);
  place_nominated(assumed, cache, pod, node);
  return refusal(cache, pod, node).empty() ? std::string_view() : kept_for_another;
}

}  // namespace carve::kubernetes::coordinator
