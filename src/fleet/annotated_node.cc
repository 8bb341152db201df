#include "fleet/annotated_node.h"

#include <algorithm>
#include <set>

namespace carve::fleet {
namespace {

constexpr const char* cordoned = "cordoned";

std::string annotation(const kubernetes::ObjectMeta& object, const char* name) {
  const auto found = object.annotations.find(name);
  return found == object.annotations.end() ? "" : found->second;
}

Result<std::set<Uuid>, std::string> read_cordon(std::string_view text) {
  std::set<Uuid> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (word.empty()) continue;
    const auto uuid = parse_uuid(word);
    if (!uuid)
      return tl::unexpected(fmt::format("{}: '{}' is not the UUID of a device", kubernetes::cordon_annotation,
                                        word.substr(0, 80)));
    out.insert(*uuid);
  }
  return out;
}

}  // namespace

Result<GpuNode, std::string> read_node(const kubernetes::ObjectMeta& object) {
  const std::string text_of_devices = annotation(object, kubernetes::devices_annotation);
  if (text_of_devices.empty())
    return tl::unexpected(
        fmt::format("it has no annotation {}: no agent has reported", kubernetes::devices_annotation));
  const auto given = kubernetes::read_devices(text_of_devices);
  if (!given) return tl::unexpected(given.error());
  if (given->devices.size() > place::max_node_devices)
    return tl::unexpected(fmt::format("{}: {} devices; a node can have at most {}",
                                      kubernetes::devices_annotation, given->devices.size(),
                                      place::max_node_devices));
  const auto cordon = read_cordon(annotation(object, kubernetes::cordon_annotation));
  if (!cordon) return tl::unexpected(cordon.error());
  const auto links = read_links(given->links, given->devices.size());
  if (!links)
    return tl::unexpected(fmt::format("{}: links: {}", kubernetes::devices_annotation, links.error()));

  GpuNode out{.kind = {.mode = given->mode.effective,
                       .is_mode_named = given->mode.desired.has_value(),
                       .policy = given->policy.effective},
              .name = object.name,
              .devices = {},
              .links = *links,
              .cpu_milli = given->cpu,
              .memory = {given->memory},
              .placement = given->placement,
              .refuses_best_effort = given->best_effort == BestEffort::refuse};
  std::set<Uuid> uuids;
  for (const kubernetes::NodeDevice& device : given->devices) {
    if (!uuids.insert(device.uuid).second)
      return tl::unexpected(
          fmt::format("{}: device {} is listed twice", kubernetes::devices_annotation, text(device.uuid)));
    GpuDevice& added = out.devices.emplace_back();
    added = {.uuid = device.uuid,
             .index = device.i,
             .model = device.model,
             .usable = {device.usable},
             .context = {device.context},
             .migrates = device.migrates,
             .trouble = device.health == kubernetes::healthy ? "" : device.health,
             .policy = {}};
    if (cordon->contains(device.uuid)) added.trouble = cordoned;
  }
  return out;
}

std::vector<DeviceUse> device_uses(const GpuNode& node, std::span<const kubernetes::PodSlices* const> pods) {
  std::vector<DeviceUse> out(node.devices.size());
  for (const kubernetes::PodSlices* const pod : pods)
    for (const auto& [container, slice] : pod->containers)
      for (const kubernetes::PlacedPart& part : slice.parts) {
        const auto device = std::ranges::find(node.devices, part.device, &GpuDevice::uuid);
        if (device == node.devices.end()) continue;
        add(out[static_cast<size_t>(device - node.devices.begin())],
            {.memory = held_memory(slice, part),
             .share = part.share,
             .isolation = slice.isolation,
             .policy = slice.policy,
             .is_exclusive = slice.exclusive.value_or(false)});
      }
  return out;
}

}  // namespace carve::fleet
