#include "workload/pool.h"

#include <algorithm>
#include <array>

namespace carve::workload {
namespace {

struct SystemLabel {
  std::string_view key;
  std::array<std::string_view, 4> values;  // The default is first; empty ones are unused.
};

constexpr SystemLabel system_labels[] = {
    {compute_policy_label, {"fixed-share", "guaranteed-burst-share", "native-burst-share"}},
    {mode_label, {"memory-and-compute", "memory", "none", "exclusive"}},
    {placement_label, {"binpack", "spread"}},
    {memory_unit_label, {"1GiB", "128MiB"}},
};

bool may_be_sliced(PoolType type) { return type != PoolType::public_group && type != PoolType::vci; }

std::string type_problem(const NodePool& pool) {
  return fmt::format(
      "pool '{}' is of type {}: GPU slicing needs an EAS resource group or a Lingjun resource quota",
      pool.name, text(pool.type));
}

SlicingCheck resource_type(const NodePool& pool) {
  SlicingCheck check{.name = "resource-type", .is_ok = may_be_sliced(pool.type)};
  if (!check.is_ok) check.message = type_problem(pool);
  return check;
}

SlicingCheck gpu_count(const NodePool& pool, std::span<const PoolNode> nodes) {
  SlicingCheck check{.name = "gpu-count"};
  check.is_ok = std::ranges::any_of(nodes, [](const PoolNode& node) { return node.gpus > 0; });
  if (!check.is_ok) check.message = fmt::format("pool '{}' has no GPU: its GPU column is 0", pool.name);
  return check;
}

// One running node with a GPU is sufficient. Otherwise the message names the starting node that will be ready
// first, or the first stopped one.
SlicingCheck instance_state(std::span<const PoolNode> nodes, Ns now) {
  SlicingCheck check{.name = "instance-state"};
  const PoolNode* starting = nullptr;
  const PoolNode* stopped = nullptr;
  for (const PoolNode& node : nodes) {
    if (node.gpus == 0) continue;
    const NodePhase state = state_of(node, now);
    check.is_ok |= state == NodePhase::running;
    if (state == NodePhase::starting &&
        (starting == nullptr || ready_in(node, now) < ready_in(*starting, now)))
      starting = &node;
    if (state == NodePhase::stopped && stopped == nullptr) stopped = &node;
  }
  if (check.is_ok) return check;
  if (starting != nullptr) {
    const Ns minutes = std::max<Ns>((ready_in(*starting, now) + 60 * second_ns - 1) / (60 * second_ns), 1);
    check.message = fmt::format(
        "node {} is Starting: wait for it to be running (a first start typically takes 8 to 10 minutes; "
        "about {} min "
        "left)",
        starting->name, minutes);
  } else if (stopped != nullptr) {
    check.message = fmt::format("node {} is Stopped: start it", stopped->name);
  }
  return check;
}

}  // namespace

bool tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.value && *toleration.value != taint.value) return false;
  return !toleration.effect || toleration.effect == taint.effect;
}

TaintResult effect_of(const std::set<Taint>& taints, std::span<const Toleration> tolerations) {
  TaintResult out;
  for (const Taint& taint : taints) {
    if (std::ranges::any_of(tolerations, [&](const Toleration& one) { return tolerates(one, taint); }))
      continue;
    if (taint.effect == TaintEffect::prefer_no_schedule)
      out.avoids = true;
    else if (out.repels == nullptr)
      out.repels = &taint;
  }
  return out;
}

bool is_system_label(std::string_view key) {
  return std::ranges::find(system_labels, key, &SystemLabel::key) != std::end(system_labels);
}

Outcome<void> check_label(std::string_view key, std::string_view value) {
  const auto system = std::ranges::find(system_labels, key, &SystemLabel::key);
  if (system != std::end(system_labels)) {
    if (!value.empty() && std::ranges::find(system->values, value) != system->values.end()) return {};
    std::string allowed;
    for (const std::string_view v : system->values)
      if (!v.empty()) allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", v);
    return failure(FailureKind::invalid_argument, "{} '{}': must be one of {}", key, value.substr(0, 80),
                   allowed);
  }
  if (key.empty() || key.size() > max_label_bytes || value.size() > max_label_bytes)
    return failure(FailureKind::invalid_argument,
                   "label '{}': a key must have 1 to {} bytes and a value at most {}", key.substr(0, 80),
                   max_label_bytes, max_label_bytes);
  return {};
}

Outcome<NodePool> validated(NodePool pool) {
  if (!is_name(pool.name))
    return failure(FailureKind::invalid_argument,
                   "'{}' is not a pool name; use up to 63 characters from a-z, 0-9 and -",
                   pool.name.substr(0, 80));
  for (const auto& [key, value] : pool.labels)
    if (const auto good = check_label(key, value); !good) return tl::unexpected(good.error());
  return pool;
}

NodePhase state_of(const PoolNode& node, Ns now) {
  if (node.is_stopped || after(node.answered_at, node_silence_ns) <= now) return NodePhase::stopped;
  return node.is_ready ? NodePhase::running : NodePhase::starting;
}

Ns ready_in(const PoolNode& node, Ns now, Ns expected_start) {
  return std::max<Ns>(after(node.started_at, expected_start) - now, 0);
}

std::vector<PoolAction> actions(const NodePool& pool, std::span<const PoolNode> nodes) {
  using Kind = PoolAction::Kind;
  std::vector<PoolAction> list;
  for (const PoolNode& node : nodes) {
    if (node.is_initialised && !pool.synchronises_labels) continue;
    for (const auto& [key, value] : pool.labels)
      if (const auto found = node.labels.find(key); found == node.labels.end() || found->second != value)
        list.push_back({.kind = Kind::set_label, .node = node.name, .key = key, .value = value});
    for (const Taint& taint : pool.taints)
      if (!node.taints.contains(taint))
        list.push_back({.kind = Kind::set_taint, .node = node.name, .taint = taint});
    for (const Taint& taint : node.taints)
      if (pool.synchronises_labels && !pool.taints.contains(taint))
        list.push_back({.kind = Kind::remove_taint, .node = node.name, .taint = taint});
    if (!node.is_initialised) list.push_back({.kind = Kind::initialise, .node = node.name});
  }
  return list;
}

std::vector<LabelDrift> drift(const NodePool& pool, std::span<const PoolNode> nodes) {
  std::vector<LabelDrift> list;
  for (const PoolNode& node : nodes)
    for (const auto& [key, value] : pool.labels) {
      const auto found = node.labels.find(key);
      const std::string has = found == node.labels.end() ? std::string() : found->second;
      if (found == node.labels.end() || has != value) list.push_back({node.name, key, value, has});
    }
  return list;
}

Outcome<void> check_edit(const PoolNode& node, std::string_view key, std::string_view value) {
  if (const auto good = check_label(key, value); !good) return good;
  const auto found = node.labels.find(key);
  if (!is_system_label(key) || found == node.labels.end() || found->second == value) return {};
  return failure(FailureKind::failed_precondition,
                 "{} is a system label: its value '{}' on node {} cannot be edited. Remove it (carve label "
                 "node {} {}-), restart the node, and add it again; or let the pool's synchronisation set it",
                 key, found->second, node.name, node.name, key);
}

std::vector<SlicingCheck> slicing_checks(const NodePool& pool, std::span<const PoolNode> nodes, Ns now) {
  if (!pool.is_sharing_enabled)
    return {{.name = "sharing", .message = fmt::format("GPU sharing is not enabled for pool {}", pool.name)}};
  std::vector<SlicingCheck> checks{resource_type(pool)};
  if (!checks.back().is_ok) return checks;
  checks.push_back(gpu_count(pool, nodes));
  if (!checks.back().is_ok) return checks;
  checks.push_back(instance_state(nodes, now));
  return checks;
}

std::string eas_problem(const NodePool& pool) { return pool.type == PoolType::ecs ? type_problem(pool) : ""; }

Outcome<void> may_slice(const NodePool& pool, std::span<const PoolNode> nodes, Ns now) {
  const SlicingCheck last = slicing_checks(pool, nodes, now).back();
  if (!last.is_ok) return failure(FailureKind::failed_precondition, "{}", last.message);
  return {};
}

}  // namespace carve::workload
