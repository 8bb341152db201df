#include "fleet/device_use.h"

#include <algorithm>
#include <map>

#include "core/invariant.h"
#include "core/request.h"

namespace carve::fleet {
namespace {

Share promise_of(const HeldPart& part) {
  return promised_share(part.policy, part.isolation == Isolation::memory_and_compute ? part.share : Share{});
}

Bytes free_memory(const GpuDevice& device, const DeviceUse& use) {
  return use.is_exclusive ? Bytes{} : minus(device.usable, std::min(use.memory, device.usable));
}

Share free_share(const DeviceUse& use) {
  if (use.is_exclusive) return {};
  return {whole_device.basis_points - std::min(use.promised.basis_points, whole_device.basis_points)};
}

// Returns whether a slice without a share is rejected because the device promises compute.
bool is_shared_out(const DeviceUse& use, bool refuses_best_effort) {
  return refuses_best_effort && use.promised.basis_points != 0;
}

}  // namespace

void add(DeviceUse& use, const HeldPart& part) {
  use.memory.count += part.memory.count;
  use.promised.basis_points += promise_of(part).basis_points;
  ++use.slices;
  use.isolated += part.isolation != Isolation::none;
  use.is_exclusive |= part.is_exclusive;
}

void remove(DeviceUse& use, const HeldPart& part) {
  use.memory = minus(use.memory, part.memory);
  use.promised.basis_points -= std::min(promise_of(part).basis_points, use.promised.basis_points);
  use.slices -= std::min(use.slices, 1u);
  if (part.isolation != Isolation::none) use.isolated -= std::min(use.isolated, 1u);
  use.is_exclusive &= !part.is_exclusive;
}

bool is_overcommitted(const GpuDevice& device, const DeviceUse& use) {
  return use.memory > device.usable || use.isolated > max_isolated_slices;
}

place::DeviceState state_of(const GpuDevice& device, const DeviceUse& use, bool refuses_best_effort) {
  place::DeviceState out;
  out.usable = device.usable;
  out.free = free_memory(device, use);
  out.context = device.context;
  out.free_share = free_share(use);
  out.slices = static_cast<uint8_t>(std::min(use.slices, 255u));
  out.isolated = static_cast<uint8_t>(std::min(use.isolated, 255u));
  out.exclusive = use.is_exclusive;
  out.sick = !device.trouble.empty();
  out.migrates = device.migrates;
  out.shared_out = is_shared_out(use, refuses_best_effort);
  if (device.policy) out.policy = static_cast<uint8_t>(*device.policy);
  return out;
}

place::DeviceSnapshot snapshot_of(const GpuDevice& device, const DeviceUse& use, bool refuses_best_effort) {
  place::DeviceSnapshot out;
  out.device = {.uuid = device.uuid,
                .index = device.index,
                .name = device.model,
                .native = device.usable,  // Only the usable bytes count, whatever the total is.
                .reserved = {},
                .migrates = device.migrates};
  out.free = free_memory(device, use);
  out.free_share = free_share(use);
  out.context = device.context;
  out.slices = use.slices;
  out.isolated = use.isolated;
  out.exclusive = use.is_exclusive;
  out.shared_out = is_shared_out(use, refuses_best_effort);
  out.policy = device.policy;
  out.trouble = device.trouble;
  return out;
}

Result<std::optional<uint32_t>, std::string> join(place::Fleet& fleet, const GpuNode& node) {
  std::map<unsigned, size_t> devices_of;
  std::vector<unsigned> model_of;
  for (const GpuDevice& device : node.devices) {
    const auto model = fleet.model(device.model);
    if (!model)
      return tl::unexpected(fmt::format("a cluster has at most {} device models; {} is one too many",
                                        place::max_models, device.model));
    ++devices_of[*model];
    model_of.push_back(*model);
  }
  if (devices_of.empty()) return std::optional<uint32_t>();
  const auto most = std::ranges::max_element(devices_of, {}, [](const auto& entry) { return entry.second; });
  place::NodeState state{.host_free = {UINT64_MAX}};
  state.model = static_cast<uint8_t>(most->first);
  state.kind = static_cast<uint8_t>(number_of(node.kind));
  state.mixed = devices_of.size() > 1;
  std::vector<place::DeviceState> devices(node.devices.size());
  for (size_t i = 0; state.mixed && i < devices.size(); ++i)
    devices[i].model = static_cast<uint8_t>(model_of[i]);
  const uint32_t number = fleet.add(state, devices);
  if (node.links) fleet.set_topology(number, *node.links);
  return std::optional(number);
}

void set_uses(place::Fleet& fleet, uint32_t number, const GpuNode& node, std::span<const DeviceUse> uses) {
  invariant(uses.size() == node.devices.size() && uses.size() == fleet.devices(number).size());
  for (unsigned i = 0; i < uses.size(); ++i) {
    const place::DeviceState& old = fleet.devices(number)[i];
    place::DeviceState state = state_of(node.devices[i], uses[i], node.refuses_best_effort);
    state.model = old.model;
    if (state != old) fleet.set_device(number, i, state);
  }
}

}  // namespace carve::fleet
