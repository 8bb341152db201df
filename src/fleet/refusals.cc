#include "fleet/refusals.h"

#include <algorithm>

#include "place/explain.h"
#include "place/rules.h"
#include "workload/host_fit.h"

namespace carve::fleet {
namespace {

constexpr std::string_view too_few_devices = "too few devices";
constexpr std::string_view separator = "; ";  // Between the reasons and the advice of a summary.

// Returns what the node's machine lacks, as the controller words it for replicas.
std::string host_message(const place::NodeState& state, const GpuNode& node,
                         const place::RequestShape& shape) {
  const workload::HostResources used{
      .cpu_milli = node.cpu_milli - std::min<uint64_t>(node.cpu_milli, state.cpu_free),
      .memory_bytes = minus(node.memory, state.host_free).count};
  return workload::host_problem({.cpu_milli = shape.cpu_milli, .memory_bytes = shape.host_memory.count},
                                {.cpu_milli = node.cpu_milli, .memory_bytes = node.memory.count}, used);
}

// Returns the message of the first rule of the node that is broken. Empty if none is, or if the devices' own
// reasons say more.
std::string node_message(const place::Fleet& fleet, uint32_t number, const GpuNode& node,
                         const place::RequestShape& shape) {
  const place::NodeState& state = fleet.node(number);
  for (const place::NodeRule& rule : place::node_rules()) {
    if (rule.holds(state, shape)) continue;
    if (rule.name == too_few_devices) return "";
    const std::string host = host_message(state, node, shape);
    return host.empty() ? rule.otherwise(fleet, state, shape) : host;
  }
  return "";
}

// Sets what each device lacks, as the node's own agent reports it.
void add_devices(Refusal& out, const GpuNode& node, std::span<const DeviceUse> uses, const Request& request) {
  std::vector<place::DeviceSnapshot> snapshots;
  for (size_t i = 0; i < uses.size(); ++i) {
    snapshots.push_back(snapshot_of(node.devices[i], uses[i], node.refuses_best_effort));
    if (request.policy == Policy::native_burst_share && !uses[i].is_exclusive)
      snapshots.back().free_share = whole_device;  // A weight does not reduce what is guaranteed.
  }
  const place::Answer answer = place::place(snapshots, request, Strategy::binpack);
  out.message = answer.reasons;
  if (answer.summary.size() > answer.reasons.size() + separator.size())
    out.advice = answer.summary.substr(answer.reasons.size() + separator.size());
}

}  // namespace

Refusal refusal_on(const place::Fleet& fleet, std::optional<uint32_t> number, const GpuNode& node,
                   std::span<const DeviceUse> uses, const Request& request,
                   const place::RequestShape& shape) {
  Refusal out{too_few_devices, ""};
  if (number) out = {place::broken_rule(fleet, *number, shape), node_message(fleet, *number, node, shape)};
  if (out.message.empty()) add_devices(out, node, uses, request);
  if (out.message.empty()) out.message = out.rule;  // A rule that only a fleet has: the models of devices.
  return out;
}

}  // namespace carve::fleet
