// kubectl carve devices
#include <fmt/format.h>

#include "kubernetes/cli/views.h"

namespace carve::kubernetes::cli {

DeviceList device_rows(const ClusterView& view) {
  DeviceList out{.has_all_pods = view.has_all_pods};
  for (const ViewNode& node : view.nodes) {
    if (!node.state) continue;
    for (size_t i = 0; i < node.state->devices.size(); ++i) {
      const fleet::GpuDevice& device = node.state->devices[i];
      const fleet::DeviceUse& cached = node.in_use[i];
      out.devices.push_back(
          {.node = node.object.name,
           .device = static_cast<uint32_t>(i),
           .uuid = text(device.uuid),
           .model = device.model,
           .memory_used = cached.memory,
           .memory = device.usable,
           .compute_used_percent = cached.is_exclusive ? 100 : cached.promised.basis_points / 100,
           .slices = cached.slices,
           .exclusive = cached.is_exclusive,
           .health = device.trouble.empty() ? std::string(kubernetes::healthy) : device.trouble});
      out.compute_used_percent += out.devices.back().compute_used_percent;
      out.compute_percent += out.devices.back().compute_percent;
      out.memory_used.count += cached.memory.count;
      out.memory.count += device.usable.count;
      out.slices += cached.slices;
    }
  }
  return out;
}

Table table_of(const DeviceList& list, Form form) {
  Table out{.headings = {"NODE", "DEVICE", "MODEL", "MEMORY", "COMPUTE", "SLICES", "HEALTH"}, .rows = {}};
  if (form == Form::wide) out.headings.push_back("UUID");
  const std::string unknown = list.has_all_pods ? "" : ">= ";
  if (list.devices.empty()) return out;
  for (const DeviceRow& row : list.devices) {
    out.names.push_back("device/" + row.uuid);
    out.rows.push_back(
        {row.node, std::to_string(row.device), row.model,
         fmt::format("{}{}/{}", unknown, text(row.memory_used).c_str(), text(row.memory).c_str()),
         fmt::format("{}{}%/{}%", unknown, row.compute_used_percent, row.compute_percent),
         row.exclusive ? "exclusive" : unknown + std::to_string(row.slices), row.health});
    if (form == Form::wide) out.rows.back().push_back(row.uuid);
  }
  out.unnamed_rows = 1;
  out.rows.push_back(
      {"all", std::to_string(list.devices.size()), "",
       fmt::format("{}{}/{}", unknown, text(list.memory_used).c_str(), text(list.memory).c_str()),
       fmt::format("{}{}%/{}%", unknown, list.compute_used_percent, list.compute_percent),
       unknown + std::to_string(list.slices), ""});
  if (form == Form::wide) out.rows.back().push_back("");
  return out;
}

}  // namespace carve::kubernetes::cli
