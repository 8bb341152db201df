// kubectl carve slices
#include <fmt/format.h>

#include <algorithm>

#include "kubernetes/cli/views.h"

namespace carve::kubernetes::cli {
namespace {

const ViewNode* find_node(const ClusterView& view, const std::string& name) {
  const auto found =
      std::ranges::find(view.nodes, name, [](const ViewNode& node) { return node.object.name; });
  return found == view.nodes.end() ? nullptr : &*found;
}

std::string device_name(const ViewNode* node, const Uuid& uuid) {
  if (node != nullptr && node->state) {
    const auto& devices = node->state->devices;
    const auto found = std::ranges::find(devices, uuid, &fleet::GpuDevice::uuid);
    if (found != devices.end()) return std::to_string(found - devices.begin());
  }
  return text(uuid);
}

// Returns a container's request in the form in which the user wrote it.
std::string asked_by(const coordinator::ClusterPod& pod, const std::string& container) {
  if (!pod.request) return "";
  const auto amounts = pod.request->containers.find(container);
  if (amounts != pod.request->containers.end() && amounts->second.units && amounts->second.unit)
    return fmt::format("{} x {}", *amounts->second.units, text(Bytes{*amounts->second.unit}).c_str());
  const auto given = pod.request->given.find(container);
  std::string out;
  if (given != pod.request->given.end())
    for (const auto& [key, value] : given->second)
      out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", key.substr(key.find('/') + 1), value);
  return out;
}

SliceRow placed_row(const ClusterView& view, const coordinator::ClusterPod& pod, const std::string& container,
                    const kubernetes::PlacedSlice& slice) {
  const ViewNode* const node = find_node(view, pod.slices->node);
  SliceRow row{.namespace_ = pod.name_space,
               .pod = pod.name,
               .container = container,
               .node = pod.slices->node,
               .isolation = std::string(text(slice.isolation)),
               .policy = std::string(text(slice.policy)),
               .enforcement = node != nullptr && node->devices ? node->devices->enforcement : "",
               .asked = asked_by(pod, container)};
  uint32_t share = 0;
  for (const kubernetes::PlacedPart& part : slice.parts) {
    row.devices.push_back(device_name(node, part.device));
    row.memory.count += part.memory.count;
    share += part.share.basis_points;
  }
  row.compute_percent = share / 100;
  return row;
}

}  // namespace

SliceList slice_rows(const ClusterView& view, const std::string& name_space) {
  SliceList out;
  for (const coordinator::ClusterPod& pod : view.pods) {
    if (!name_space.empty() && pod.name_space != name_space) continue;
    if (pod.slices) {
      for (const auto& [container, slice] : pod.slices->containers)
        out.slices.push_back(placed_row(view, pod, container, slice));
    } else if (pod.request) {
      for (const auto& [container, amounts] : pod.request->containers)
        out.slices.push_back({.namespace_ = pod.name_space,
                              .pod = pod.name,
                              .container = container,
                              .asked = asked_by(pod, container)});
    }
  }
  return out;
}

Table table_of(const SliceList& list, Form form) {
  Table out{.headings = {"NAMESPACE", "POD", "CONTAINER", "NODE", "DEVICES", "MEMORY", "COMPUTE", "ISOLATION",
                         "ASKED"},
            .rows = {}};
  if (form == Form::wide) out.headings.insert(out.headings.end(), {"POLICY", "ENFORCEMENT"});
  for (const SliceRow& row : list.slices) {
    std::string devices;
    for (const std::string& device : row.devices) devices += (devices.empty() ? "" : ",") + device;
    out.names.push_back("pod/" + row.pod);
    out.rows.push_back({row.namespace_, row.pod, row.container, row.node.empty() ? "waits" : row.node,
                        devices, row.devices.empty() ? std::string() : std::string(text(row.memory).c_str()),
                        row.compute_percent == 0 ? "" : fmt::format("{}%", row.compute_percent),
                        row.isolation, row.asked});
    if (form == Form::wide) out.rows.back().insert(out.rows.back().end(), {row.policy, row.enforcement});
  }
  return out;
}

}  // namespace carve::kubernetes::cli
