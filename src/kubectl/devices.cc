// kubectl carve devices
#include <fmt/format.h>

#include "kubectl/views.h"

namespace carve::kubectl {

DeviceList device_rows(const ClusterView& view) {
  DeviceList out{.has_all_pods = view.has_all_pods};
  for (const ViewNode& node : view.nodes) {
    if (!node.state) continue;
    for (size_t i = 0; i < node.state->devices.size(); ++i) {
      const cluster::ClusterDevice& device = node.state->devices[i];
      const cluster::DeviceBook& book = node.booked[i];
      out.devices.push_back(
          {.node = node.object.name,
           .device = static_cast<uint32_t>(i),
           .uuid = text(device.uuid),
           .model = device.model,
           .memory_used = book.memory,
           .memory = device.usable,
           .compute_used_percent = book.is_exclusive ? 100 : book.promised.basis_points / 100,
           .slices = book.slices,
           .exclusive = book.is_exclusive,
           .health = device.trouble.empty() ? std::string(kube::healthy) : device.trouble});
      out.memory_used.count += book.memory.count;
      out.memory.count += device.usable.count;
      out.slices += book.slices;
    }
  }
  return out;
}

Table table_of(const DeviceList& list, Form form) {
  Table out{.headings = {"NODE", "DEVICE", "MODEL", "MEMORY", "COMPUTE", "SLICES", "HEALTH"}, .rows = {}};
  if (form == Form::wide) out.headings.push_back("UUID");
  const std::string unknown = list.has_all_pods ? "" : ">= ";
  for (const DeviceRow& row : list.devices) {
    out.rows.push_back(
        {row.node, std::to_string(row.device), row.model,
         fmt::format("{}{}/{}", unknown, text(row.memory_used).c_str(), text(row.memory).c_str()),
         fmt::format("{}{}%", unknown, row.compute_used_percent),
         row.exclusive ? "exclusive" : unknown + std::to_string(row.slices), row.health});
    if (form == Form::wide) out.rows.back().push_back(row.uuid);
  }
  out.rows.push_back(
      {"all", std::to_string(list.devices.size()), "",
       fmt::format("{}{}/{}", unknown, text(list.memory_used).c_str(), text(list.memory).c_str()), "",
       unknown + std::to_string(list.slices), ""});
  if (form == Form::wide) out.rows.back().push_back("");
  return out;
}

}  // namespace carve::kubectl
