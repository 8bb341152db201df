#include "fleet/answered_node.h"

#include <algorithm>

#include "workload/pool.h"

namespace carve::fleet {
namespace {

// Returns the policy of all devices, or no value if they differ or are unknown.
std::optional<Policy> common_policy(const objects::NodeStatus& status) {
  std::optional<Policy> out;
  for (const objects::NodeDeviceStatus& device : status.devices) {
    const auto policy = parse<Policy>(device.policy);
    if (!policy || (out && *out != *policy)) return std::nullopt;
    out = policy;
  }
  return out;
}

std::optional<Policy> node_policy(const objects::NodeStatus& status) {
  if (status.has_policy_per_slice) return std::nullopt;
  const auto common = common_policy(status);
  return common ? common : parse<Policy>(status.policy.effective);
}

}  // namespace

Result<GpuNode, std::string> read_node(const std::string& name,
                                       const std::map<std::string, std::string>& labels,
                                       const objects::NodeStatus& status) {
  if (status.devices.size() > place::max_node_devices)
    return tl::unexpected(fmt::format("it has {} devices; a node can have at most {}", status.devices.size(),
                                      place::max_node_devices));
  const std::optional<Policy> policy = node_policy(status);
  GpuNode out{.kind = {.mode = parse<NodeMode>(status.mode.effective).value_or(NodeMode::memory_and_compute),
                       .is_mode_named = labels.contains(std::string(workload::mode_label)),
                       .policy = policy,
                       .unit = parse<MemoryUnit>(status.memory_unit.effective).value_or(MemoryUnit::gib)},
              .name = name,
              .devices = {},
              .links = read_links(status.links, status.devices.size()).value_or(std::nullopt),
              .cpu_milli = status.cpu_milli,
              .memory = {status.memory_bytes},
              .placement = parse<Strategy>(status.placement).value_or(Strategy::binpack),
              .refuses_best_effort = !status.admits_best_effort};
  for (const objects::NodeDeviceStatus& device : status.devices) {
    GpuDevice& added = out.devices.emplace_back();
    added = {.uuid = parse_uuid(device.uuid).value_or(Uuid{}),
             .index = device.index,
             .model = device.name,
             .usable = {device.usable_bytes},
             .context = {status.contexts_in_slice ? device.context_bytes : 0},
             .migrates = device.migrates,
             .trouble = device.health.reason,
             .policy = {}};
    if (!policy && !status.has_policy_per_slice) added.policy = parse<Policy>(device.policy);
  }
  return out;
}

std::vector<DeviceUse> device_uses(const objects::NodeStatus& status) {
  std::vector<DeviceUse> out;
  for (const objects::NodeDeviceStatus& device : status.devices)
    out.push_back(
        {.memory = minus(Bytes{device.usable_bytes}, Bytes{device.free_bytes}),
         .promised = {whole_device.basis_points - std::min(device.free_share_bp, whole_device.basis_points)},
         .slices = device.slices,
         .isolated = device.isolated_slices,
         .is_exclusive = !device.exclusive_to.empty()});
  return out;
}

}  // namespace carve::fleet
