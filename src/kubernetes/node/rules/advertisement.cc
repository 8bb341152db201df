#include "kubernetes/node/rules/advertisement.h"

#include <algorithm>
#include <set>

#include "core/enforcement.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes::node {
namespace {

constexpr const char* stored_mode_label = "carve.dev/mode";

std::string holder_text(const api::Slice& slice) {
  if (slice.holder && slice.holder->pod) return slice.holder->pod->namespace_ + "/" + slice.holder->pod->name;
  return "slice " + slice.name;
}

// Returns the pods that have slices, without duplicates and sorted by name.
std::vector<std::string> holders_of(const std::vector<api::Slice>& slices) {
  std::set<std::string> out;
  for (const api::Slice& slice : slices)
    if (slice.state != SliceState::ended) out.insert(holder_text(slice));
  return {out.begin(), out.end()};
}

std::vector<std::string> holders_named(const std::vector<api::Slice>& slices,
                                       const std::vector<std::string>& names) {
  std::set<std::string> out;
  for (const std::string& name : names) {
    const auto slice = std::ranges::find(slices, name, &api::Slice::name);
    out.insert(slice != slices.end() ? holder_text(*slice) : "slice " + name);
  }
  return {out.begin(), out.end()};
}

std::string health_of(const api::Device& device) {
  if (device.health.state != HealthState::ok) return std::string(text(device.health.state));
  if (device.mode != DeviceMode::whole) return std::string(text(device.mode));
  return kubernetes::healthy;
}

kubernetes::NodeDevices devices_of(const api::AgentReport& agent, const LabelSettings& desired,
                                   const HostFacts& host) {
  kubernetes::NodeDevices out;
  out.boot = host.boot;
  for (const api::Device& device : agent.devices) {
    const auto uuid = parse_uuid(device.uuid);
    if (!uuid) continue;
    kubernetes::NodeDevice& added = out.devices.emplace_back();
    added.i = device.index;
    added.uuid = *uuid;
    added.model = device.name;
    added.usable = device.usable_bytes;
    added.context = agent.node.contexts_in_slice ? device.context_bytes : 0;
    added.migrates = device.migrates;
    added.health = health_of(device);
  }
  out.links = agent.links;
  out.cpu = host.cpu_milli;
  out.memory = host.memory_bytes;
  const Setting<NodeMode> mode = mode_of(agent, desired);
  out.mode = {.desired = desired.mode, .effective = mode.effective, .blocked_by = mode.blocked_by};
  out.policy = {.desired = desired.policy,
                .effective = agent.node.policy.effective.value_or(agent.node.policy.desired),
                .blocked_by = holders_named(agent.slices, agent.node.policy.blocked_by)};
  out.placement = desired.placement;
  out.best_effort = agent.node.admit_best_effort ? BestEffort::admit : BestEffort::refuse;
  out.enforcement = text(agent.node.enforcement.level);
  out.simulated = !agent.version.simulated.empty();
  return out;
}

Totals totals_of(const kubernetes::NodeDevices& devices) {
  Totals out;
  const bool are_weights = devices.policy.effective == Policy::native_burst_share;
  for (const kubernetes::NodeDevice& device : devices.devices) {
    out.memory_bytes += device.usable;
    out.compute_percent += are_weights ? compute_of_weights : compute_of_device;
  }
  return out;
}

Condition not_ready(std::string reason, std::string message) {
  return {
      .type = ready_condition, .is_true = false, .reason = std::move(reason), .message = std::move(message)};
}

// Returns the condition that keeps pods with slices off the node, if there is one.
std::optional<Condition> obstacle(const AdvertisementInput& in) {
  if (!in.desired) return not_ready("WrongLabel", in.desired.error());
  if (!in.agent) return not_ready("NoAgent", in.agent_problem);
  if (in.agent->node.bookkeeper != Bookkeeper::kubernetes)
    return not_ready("OtherBookkeeper",
                     "the agent, not Kubernetes, manages the slices of this node; start carved with "
                     "--bookkeeper kubernetes");
  if (in.has_other_plugin)
    return not_ready(
        "CarveOtherPlugin",
        "nvidia.com/gpu is also allocatable on this node; remove NVIDIA's device plugin from it");
  if (way_of(*in.agent, *in.desired).effective != Way::dra) return std::nullopt;
  if (!in.dra_problem.empty())
    return not_ready("DriverRejected",
                     fmt::format("kubelet rejected the DRA driver carve.dev: {}", in.dra_problem));
  if (!in.runtime.has_cdi) return not_ready(no_cdi_reason, "DRA needs CDI: " + in.runtime.message);
  return std::nullopt;
}

template <class Value>
std::string pending_text(const char* name, const kubernetes::NodeSetting<Value>& setting, Value desired) {
  return fmt::format("{} {} -> {} (blocked by {})", name, text(setting.effective), text(desired),
                     fmt::join(setting.blocked_by, ", "));
}

Condition pending(const kubernetes::NodeDevices& devices, const Setting<Way>& way) {
  std::vector<std::string> messages;
  if (way.pending())
    messages.push_back(fmt::format("bookkeeper {} -> {} (blocked by {})", text(way.effective),
                                   text(way.desired), fmt::join(way.blocked_by, ", ")));
  if (const auto desired = devices.mode.desired.value_or(NodeMode::memory_and_compute);
      desired != devices.mode.effective)
    messages.push_back(pending_text("mode", devices.mode, desired));
  if (const auto desired = devices.policy.desired.value_or(Policy::fixed_share);
      desired != devices.policy.effective)
    messages.push_back(pending_text("compute-policy", devices.policy, desired));
  Condition out{.type = pending_condition, .is_true = !messages.empty()};
  out.reason = out.is_true ? "Blocked" : "InEffect";
  out.message = out.is_true ? fmt::format("{}", fmt::join(messages, "; ")) : "all settings are in effect";
  return out;
}

Condition ready_as(const AdvertisementInput& in, const Advertisement& ad) {
  if (!in.runtime.has_cdi)
    return {.type = ready_condition,
            .is_true = true,
            .reason = no_cdi_reason,
            .message =
                fmt::format("degraded: no CDI, so containers have all device nodes: {}", in.runtime.message)};
  return {.type = ready_condition,
          .is_true = true,
          .reason = "Ready",
          .message = fmt::format("{} devices, {} usable", ad.devices.devices.size(),
                                 text(Bytes{totals_of(ad.devices).memory_bytes}))};
}

}  // namespace

Totals held_totals(const kubernetes::ObjectsByUid& pods, const std::string& node,
                   const std::vector<api::Device>& devices) {
  Totals out;
  uint64_t basis_points = 0;
  for (const auto& [uid, pod] : pods) {
    const auto annotation = pod.annotations.find(kubernetes::slices_annotation);
    if (annotation == pod.annotations.end()) continue;
    const auto slices = kubernetes::read_slices(annotation->second);
    if (!slices || slices->node != node) continue;
    for (const auto& [container, placed] : slices->containers)
      for (const kubernetes::PlacedPart& part : placed.parts) {
        const auto device = std::ranges::find(devices, text(part.device), &api::Device::uuid);
        const bool is_whole = placed.exclusive.value_or(false);
        const uint64_t usable = device != devices.end() ? device->usable_bytes : 0;
        const uint64_t held =
            is_whole ? std::max(usable, part.memory.count) : held_memory(placed, part).count;
        if (__builtin_add_overflow(out.memory_bytes, held, &out.memory_bytes)) out.memory_bytes = UINT64_MAX;
        basis_points += is_whole ? compute_of_device * 100 : part.share.basis_points;
      }
  }
  out.compute_percent = (basis_points + 99) / 100;
  return out;
}

NodeMode stored_mode(const api::AgentReport& agent) {
  const auto stored = agent.node.labels.find(stored_mode_label);
  if (stored == agent.node.labels.end()) return NodeMode::memory_and_compute;
  return parse<NodeMode>(stored->second).value_or(NodeMode::memory_and_compute);
}

Setting<Way> way_of(const api::AgentReport& agent, const LabelSettings& desired) {
  std::vector<api::Slice> others;  // Those that keep the other way in effect.
  for (const api::Slice& slice : agent.slices) {
    if (slice.state == SliceState::ended || !slice.holder) continue;
    const Way way = slice.holder->claim ? Way::dra : Way::extender;
    if (way != desired.way) others.push_back(slice);
  }
  const Way other = desired.way == Way::dra ? Way::extender : Way::dra;
  return settled(Setting<Way>{.desired = desired.way, .effective = other, .blocked_by = {}},
                 holders_of(others));
}

Setting<NodeMode> mode_of(const api::AgentReport& agent, const LabelSettings& desired) {
  Setting<NodeMode> out;
  out.desired = desired.mode.value_or(NodeMode::memory_and_compute);
  out.effective = out.desired;
  if (const auto stored = agent.node.labels.find(stored_mode_label); stored != agent.node.labels.end())
    out.effective = parse<NodeMode>(stored->second).value_or(out.desired);
  return settled(std::move(out), holders_of(agent.slices));
}

std::optional<api::NodeChange> agent_change(const api::AgentReport& agent, const LabelSettings& labels) {
  api::NodeChange out;
  bool changes = false;
  if (const Policy desired = labels.policy.value_or(Policy::fixed_share);
      desired != agent.node.policy.desired) {
    out.policy = desired;
    changes = true;
  }
  const std::string mode(text(mode_of(agent, labels).effective));
  const auto stored = agent.node.labels.find(stored_mode_label);
  if (stored == agent.node.labels.end() || stored->second != mode) {
    out.labels[stored_mode_label] = mode;
    changes = true;
  }
  return changes ? std::optional(out) : std::nullopt;
}

Advertisement advertise(const AdvertisementInput& in) {
  Advertisement out;
  out.reader = in.reader;
  const std::optional<Condition> trouble = obstacle(in);
  if (in.agent) {
    out.is_known = true;
    out.devices = devices_of(*in.agent, in.desired.value_or(LabelSettings{}), in.host);
    out.drift = in.drift;
    const Totals held = held_totals(in.pods, in.node, in.agent->devices);
    const Setting<Way> way = way_of(*in.agent, in.desired.value_or(LabelSettings{}));
    // Kubernetes counts the devices of a node with DRA by its ResourceSlice.
    const Totals offered = trouble || way.effective == Way::dra ? Totals{} : totals_of(out.devices);
    out.totals = {.memory_bytes = std::max(held.memory_bytes, offered.memory_bytes),
                  .compute_percent = std::max(held.compute_percent, offered.compute_percent)};
    if (!trouble) out.label = std::string(text(way.effective));
    out.conditions.push_back(pending(out.devices, way));
  }
  out.conditions.insert(out.conditions.begin(), trouble ? *trouble : ready_as(in, out));
  return out;
}

}  // namespace carve::kubernetes::node
