#include "kubernetes/cli/fleet_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/request.h"

namespace carve::kubernetes::cli {
namespace {

constexpr size_t max_name_bytes = 253;  // Longest name that carve-replay reads.

std::string name_of(const coordinator::ClusterPod& pod, const std::string& container) {
  std::string out = fmt::format("{}/{}", pod.full_name(), container);
  return out.size() <= max_name_bytes ? out : fmt::format("{}/{}", pod.uid, container);
}

FleetNode node_of(const ViewNode& node) {
  FleetNode out{.name = node.object.name,
                .model = node.state->devices.front().model,
                .mode = std::string(text(node.state->kind.mode)),
                .policy = std::string(text(node.state->kind.policy.value_or(Policy::fixed_share))),
                .cpu_milli = node.state->cpu_milli,
                .host_memory_bytes = node.state->memory.count,
                .devices = {},
                .links = {}};
  if (!node.devices->links.empty()) out.links = node.devices->links;
  for (const fleet::GpuDevice& device : node.state->devices)
    out.devices.push_back(
        {.uuid = text(device.uuid), .memory_bytes = device.usable.count, .trouble = device.trouble});
  return out;
}

FleetSlice slice_of(const coordinator::ClusterPod& pod, const std::string& container,
                    const kubernetes::PlacedSlice& placed, const std::string& application) {
  FleetSlice out{.name = name_of(pod, container),
                 .node = pod.slices->node,
                 .devices = {},
                 .exclusive = placed.exclusive.value_or(false),
                 .isolated = placed.isolation != Isolation::none,
                 .application = application};
  for (const kubernetes::PlacedPart& part : placed.parts) {
    out.devices.push_back(text(part.device));
    if (out.exclusive) continue;
    out.memory_bytes = std::max(out.memory_bytes, held_memory(placed, part).count);
    if (placed.isolation == Isolation::memory_and_compute)
      out.share_bp = std::max(out.share_bp, promised_share(placed.policy, part.share).basis_points);
  }
  return out;
}

// Returns the reason why the document cannot represent the slice. Empty if it can.
std::string obstacle(const ClusterView& view, const FleetSlice& slice) {
  const auto node = std::ranges::find_if(
      view.nodes, [&](const ViewNode& each) { return each.state && each.object.name == slice.node; });
  if (node == view.nodes.end()) return fmt::format("the devices of node {} are unknown", slice.node);
  for (const std::string& uuid : slice.devices)
    if (std::ranges::none_of(node->state->devices,
                             [&](const fleet::GpuDevice& device) { return text(device.uuid) == uuid; }))
      return fmt::format("node {} has no device {}", slice.node, uuid);
  return "";
}

}  // namespace

FleetSnapshot snapshot_of(const ClusterView& view, std::vector<std::string>& left_out) {
  FleetSnapshot out;
  for (const ViewNode& node : view.nodes) {
    if (node.state && !node.state->devices.empty())
      out.nodes.push_back(node_of(node));
    else
      left_out.push_back(
          fmt::format("node {}: {}", node.object.name, node.state ? "it has no device" : node.problem));
  }
  for (size_t i = 0; i < view.pods.size(); ++i) {
    const coordinator::ClusterPod& pod = view.pods[i];
    if (!pod.slices) continue;
    uint64_t cpu = pod.request ? pod.request->cpu : 0;
    for (const auto& [container, placed] : pod.slices->containers) {
      FleetSlice slice = slice_of(pod, container, placed, view.pod_objects[i].controller_uid);
      if (const std::string why = obstacle(view, slice); !why.empty()) {
        left_out.push_back(fmt::format("slice {}: {}", slice.name, why));
        continue;
      }
      slice.cpu_milli = std::exchange(cpu, 0);
      out.held.push_back(std::move(slice));
    }
  }
  return out;
}

}  // namespace carve::kubernetes::cli
