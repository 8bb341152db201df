#include "controller/nodes/node_rules.h"

#include <algorithm>

#include "dialects/label_synonyms.h"
#include "objects/rules/pool_check.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

using objects::Kind;

std::string label_of(const Object& node, std::string_view key) {
  const auto found = node.labels.find(std::string(key));
  return found == node.labels.end() ? "" : found->second;
}

std::string moment(int64_t utc_ns) { return os::rfc3339(utc_ns, os::Decimals::milliseconds); }

objects::GpuMemUnits gpu_mem_units(const NodeObservation& seen) {
  const uint64_t size = size_of(seen.report.node.memory_unit).count;
  objects::GpuMemUnits out{.unit = std::string(text(seen.report.node.memory_unit))};
  for (const api::Device& device : seen.report.devices) {
    out.capacity += device.usable_bytes / size;
    out.allocated += (device.granted_bytes + size - 1) / size;
  }
  return out;
}

uint32_t isolated_slices(const NodeObservation& seen, const std::string& device) {
  return static_cast<uint32_t>(std::ranges::count_if(seen.report.slices, [&](const api::Slice& slice) {
    return slice.isolation != Isolation::none &&
           std::ranges::find(slice.parts, device, &api::SlicePart::uuid) != slice.parts.end();
  }));
}

std::vector<objects::NodeDeviceStatus> devices_of(const NodeObservation& seen) {
  std::vector<objects::NodeDeviceStatus> out;
  for (const api::Device& device : seen.report.devices)
    out.push_back({.index = device.index,
                   .uuid = device.uuid,
                   .name = device.name,
                   .health = device.health,
                   .usable_bytes = device.usable_bytes,
                   .free_bytes = device.free_bytes,
                   .context_bytes = device.context_bytes,
                   .slices = device.slices,
                   .isolated_slices = isolated_slices(seen, device.uuid),
                   .max_slices = device.max_slices,
                   .free_share_bp = seen.report.node.overcommit_compute
                                        ? whole_device.basis_points
                                        : whole_device.basis_points -
                                              std::min(device.share_granted_bp, whole_device.basis_points),
                   .exclusive_to = device.exclusive_to,
                   .policy = device.policy.effective ? std::string(text(*device.policy.effective)) : "",
                   .migrates = device.migrates});
  return out;
}

constexpr std::string_view mixed_policy = "mixed";  // The node's devices have different ones.

objects::NodeSetting policy_of(const Object& node, const NodeObservation& seen) {
  const std::string wanted = label_of(node, workload::compute_policy_label);
  const api::PolicySetting& policy = seen.report.node.policy;
  return {.desired = wanted.empty() ? std::string(text(policy.desired)) : wanted,
          .effective = policy.effective ? std::string(text(*policy.effective)) : std::string(mixed_policy),
          .blocked_by = policy.blocked_by};
}

objects::NodeSetting unit_of(const Object& node, const NodeObservation& seen) {
  const std::string wanted = label_of(node, workload::memory_unit_label);
  return {.desired = wanted.empty() ? std::string(text(seen.report.node.desired_memory_unit)) : wanted,
          .effective = std::string(text(seen.report.node.memory_unit)),
          .blocked_by = seen.report.node.memory_unit_blocked_by};
}

objects::NodeSetting mode_of(const Object& node) {
  const std::string wanted = label_of(node, workload::mode_label);
  const std::string mode = wanted.empty() ? "memory-and-compute" : wanted;
  return {.desired = mode, .effective = mode, .blocked_by = {}};
}

objects::Condition condition(const char* type, bool is_true, std::string reason, std::string message) {
  return {.type = type,
          .status = is_true ? "True" : "False",
          .reason = std::move(reason),
          .message = std::move(message),
          .last_transition_time = {}};
}

// Keeps the time of a condition that did not change.
void date(std::vector<objects::Condition>& conditions, const std::vector<objects::Condition>& before,
          int64_t now_ns) {
  for (objects::Condition& now : conditions) {
    const auto same = std::ranges::find_if(
        before, [&](const objects::Condition& c) { return c.type == now.type && c.status == now.status; });
    now.last_transition_time = same == before.end() ? moment(now_ns) : same->last_transition_time;
  }
}

// Only the state and its times, without labels and taints.
workload::PoolNode timed_node(const Object& node, const NodeObservation& seen) {
  return {.name = node.key.name,
          .gpus = static_cast<unsigned>(seen.report.devices.size()),
          .is_stopped = node_spec(node).stopped,
          .is_ready = seen.has_answered && !seen.report.devices.empty() && !seen.report.node.starting,
          .started_at = seen.agent_started_ns() != 0 ? seen.agent_started_ns() : seen.answered_ns,
          .answered_at = seen.answered_ns};
}

}  // namespace

ObjectKey node_key(const std::string& name) { return {Kind::node, "default", name}; }
ObjectKey pool_key(const std::string& name) { return {Kind::pool, "default", name}; }

objects::NodeStatus observed_status(const Object& node, const NodeObservation& seen, int64_t now_ns,
                                    int64_t expected_start_ns) {
  const objects::NodeStatus& before = node_status(node);
  objects::NodeStatus out = before;
  out.agent.reset();
  const workload::PoolNode timed = timed_node(node, seen);
  const NodePhase state = workload::state_of(timed, now_ns);
  out.state = state;
  out.ready_in_seconds =
      state == NodePhase::starting
          ? static_cast<uint32_t>(workload::ready_in(timed, now_ns, expected_start_ns) / workload::second_ns)
          : 0;
  const std::string refusal = refusal_of(node);
  out.conditions = {condition("Ready", state == NodePhase::running, text(out.state), ""),
                    condition("Schedulable", refusal.empty(), refusal.empty() ? "Open" : "Refuses", refusal)};
  date(out.conditions, before.conditions, now_ns);
  const std::string placement = label_of(node, workload::placement_label);
  out.placement = placement.empty() ? "binpack" : placement;
  out.mode = mode_of(node);
  if (!seen.has_answered) return out;
  out.started_at = moment(seen.agent_started_ns());
  if (before.started_at != out.started_at) out.removed_labels.clear();  // The agent was restarted.
  out.cpu_milli = seen.host.cpu_milli;
  out.memory_bytes = seen.host.memory_bytes;
  out.gpus = static_cast<uint32_t>(seen.report.devices.size());
  out.gpu_mem_units = gpu_mem_units(seen);
  out.policy = policy_of(node, seen);
  out.has_policy_per_slice = seen.report.node.policy_per_slice;
  out.contexts_in_slice = seen.report.node.contexts_in_slice;
  out.admits_best_effort = seen.report.node.admit_best_effort;
  out.memory_unit = unit_of(node, seen);
  out.slices = static_cast<uint32_t>(seen.report.slices.size());
  out.slice_list.clear();
  for (const api::Slice& slice : seen.report.slices) {
    const auto kind = slice.labels.find("carve.dev/kind"), name = slice.labels.find("carve.dev/name");
    out.slice_list.push_back({.name = slice.name,
                              .kind = kind == slice.labels.end() ? "" : kind->second,
                              .workload = name == slice.labels.end() ? "" : name->second});
  }
  out.devices = devices_of(seen);
  out.links = seen.report.links;
  return out;
}

std::map<std::string, std::string> agent_labels(const api::Node& agent) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : agent.labels)
    if (const auto ours = dialects::our_value(key, value)) out.emplace(dialects::our_key(key), *ours);
  return out;
}

std::string refusal_of(const Object& node) {
  const objects::NodeSpec& spec = node_spec(node);
  const std::string& name = node.key.name;
  if (spec.stopped) return fmt::format("node {0} is stopped; start it with carve node start {0}", name);
  if (spec.restarting)
    return fmt::format("node {} is being restarted; it grants slices again when the running ones have ended",
                       name);
  if (!spec.schedulable) return fmt::format("node {} is cordoned by {}", name, spec.cordoned);
  return "";
}

namespace {

// Returns the setting that the label requests from the agent: its value, or the default if the label was
// removed and the node has not restarted since. The agent keeps a setting, so the removal must be sent too.
// No value if the node never had the label; then the agent's own setting stays.
template <Worded T>
std::optional<T> wanted_setting(const Object& node, std::string_view key, T default_value) {
  if (const std::string value = label_of(node, key); !value.empty()) return parse<T>(value);
  const auto& removed = node_status(node).removed_labels;
  return std::ranges::find(removed, key) == removed.end() ? std::nullopt : std::optional(default_value);
}

// Labels of the agent with this meaning would make it reject the change.
void remove_labels(const NodeObservation& seen, LabelMeaning meaning, api::NodeChange& out) {
  for (const auto& [key, value] : seen.report.node.labels)
    if (meaning_of(key) == meaning) out.removed_labels.push_back(key);
}

}  // namespace

std::optional<api::NodeChange> agent_change(const Object& node, const NodeObservation& seen) {
  if (!seen.has_answered) return std::nullopt;
  api::NodeChange out;
  bool changes = false;
  const auto policy = wanted_setting(node, workload::compute_policy_label, Policy::fixed_share);
  if (policy && *policy != seen.report.node.policy.desired) {
    out.policy = policy;
    remove_labels(seen, LabelMeaning::policy, out);
    changes = true;
  }
  const auto unit = wanted_setting(node, workload::memory_unit_label, MemoryUnit::gib);
  if (unit && *unit != seen.report.node.desired_memory_unit) {
    remove_labels(seen, LabelMeaning::memory_unit, out);
    out.memory_unit = unit;
    out.when_free = true;
    changes = true;
  }
  if (const std::string refusal = refusal_of(node); refusal != seen.report.node.grants_refused) {
    out.refuse_grants = refusal;
    changes = true;
  }
  return changes ? std::optional(out) : std::nullopt;
}

bool has_restarted(const Object& node, const NodeObservation& seen) {
  return node_spec(node).restarting && seen.has_answered && seen.report.slices.empty() &&
         seen.report.node.policy.effective == seen.report.node.policy.desired &&
         seen.report.node.memory_unit == seen.report.node.desired_memory_unit && !agent_change(node, seen);
}

std::set<workload::Taint> taints_of(const Object& node) {
  std::set<workload::Taint> out;
  for (const std::string& taint : node_status(node).taints) {
    const size_t equal = taint.find('='), colon = taint.rfind(':');
    if (equal == std::string::npos || colon == std::string::npos || colon < equal) continue;
    // An effect of a newer version repels.
    const TaintEffect effect = parse<TaintEffect>(taint.substr(colon + 1)).value_or(TaintEffect::no_schedule);
    out.insert({taint.substr(0, equal), taint.substr(equal + 1, colon - equal - 1), effect});
  }
  return out;
}

workload::PoolNode pool_node(const Object& node, int64_t now_ns) {
  const objects::NodeStatus& status = node_status(node);
  workload::PoolNode out{.name = node.key.name,
                         .labels = {node.labels.begin(), node.labels.end()},
                         .is_initialised = status.is_initialised,
                         .gpus = status.gpus,
                         .is_stopped = status.state == NodePhase::stopped,
                         .is_ready = status.state == NodePhase::running,
                         .started_at = now_ns + int64_t{status.ready_in_seconds} * workload::second_ns -
                                       workload::default_expected_start_ns,
                         .answered_at = now_ns};
  out.taints = taints_of(node);
  return out;
}

std::vector<workload::PoolNode> nodes_of(const std::string& pool, const std::vector<Pointer>& nodes,
                                         int64_t now_ns) {
  std::vector<workload::PoolNode> out;
  for (const Pointer& node : nodes)
    if (node_spec(*node).pool == pool) out.push_back(pool_node(*node, now_ns));
  return out;
}

objects::Slicing slicing_of(const Object& pool, const std::vector<Pointer>& nodes, int64_t now_ns) {
  const workload::NodePool checked = objects::node_pool(pool.key.name, pool_spec(pool));
  objects::Slicing out{.available = true, .eas_problem = workload::eas_problem(checked)};
  for (const workload::SlicingCheck& check :
       workload::slicing_checks(checked, nodes_of(pool.key.name, nodes, now_ns), now_ns)) {
    out.checks.push_back({.name = std::string(check.name), .ok = check.is_ok, .message = check.message});
    if (check.is_ok) continue;
    out.available = false;
    out.failed = check.name;
  }
  return out;
}

objects::PoolStatus pool_status(const Object& pool, const std::vector<Pointer>& nodes, int64_t now_ns) {
  objects::PoolStatus out;
  const std::vector<workload::PoolNode> own = nodes_of(pool.key.name, nodes, now_ns);
  out.nodes = static_cast<uint32_t>(own.size());
  for (const workload::PoolNode& node : own) {
    out.gpus += node.gpus;
    out.running_gpu_nodes += node.gpus > 0 && workload::state_of(node, now_ns) == NodePhase::running ? 1 : 0;
  }
  for (const workload::LabelDrift& drift :
       workload::drift(objects::node_pool(pool.key.name, pool_spec(pool)), own))
    out.drift.push_back({drift.node, drift.label, drift.pool_value, drift.node_value});
  out.slicing = slicing_of(pool, nodes, now_ns);
  return out;
}

std::string policy_problem(const std::string& policy, const std::string& pool,
                           const std::vector<Pointer>& nodes, const std::string& field) {
  std::vector<std::string> others;
  for (const Pointer& node : nodes) {
    if (!pool.empty() && node_spec(*node).pool != pool) continue;
    const objects::NodeStatus& status = node_status(*node);
    const std::string& effective = status.policy.effective;
    if (status.has_policy_per_slice || effective.empty() || effective == mixed_policy || effective == policy)
      return "";
    others.push_back(fmt::format("node {} has {}", node->key.name, effective));
  }
  if (others.empty()) return "";
  // A PAI-EAS share is a maximum, and its document names no policy.
  const std::string text = field.ends_with("policy")
                               ? fmt::format("no node has the policy '{}'", policy)
                               : fmt::format("it needs the policy '{}', which no node has", policy);
  return fmt::format("{}: {}: {}; leave the policy out, or set a node's policy", field, text,
                     fmt::join(others, ", "));
}

std::string slicing_problem(const Object& pool, const std::vector<Pointer>& nodes, int64_t now_ns) {
  const auto allowed = workload::may_slice(objects::node_pool(pool.key.name, pool_spec(pool)),
                                           nodes_of(pool.key.name, nodes, now_ns), now_ns);
  return allowed ? "" : allowed.error().message;
}

}  // namespace carve::controller
