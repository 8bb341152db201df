// kubectl carve nodes
#include <fmt/format.h>

#include <algorithm>

#include "kubectl/views.h"

namespace carve::kubectl {
namespace {

template <class Value>
void add_pending(NodeRow& row, const kube::NodeSetting<Value>& setting) {
  if (!setting.desired || *setting.desired == setting.effective) return;
  std::string blockers;
  for (const std::string& pod : setting.blocked_by) blockers += (blockers.empty() ? "" : ", ") + pod;
  row.pending.push_back(fmt::format("{} -> {}{}", text(setting.effective), text(*setting.desired),
                                    blockers.empty() ? "" : fmt::format(" (blocked by {})", blockers)));
}

std::string label(const kube::ObjectMeta& object, const char* key) {
  const auto found = object.labels.find(key);
  return found == object.labels.end() ? "" : found->second;
}

NodeRow row_of(const ViewNode& node) {
  NodeRow row{
      .name = node.object.name, .bookkeeper = label(node.object, "carve.dev/node"), .problem = node.problem};
  if (!node.devices) return row;
  const kube::NodeDevices& devices = *node.devices;
  row.mode = text(devices.mode.effective);
  row.policy = text(devices.policy.effective);
  row.devices = static_cast<uint32_t>(devices.devices.size());
  row.compute_percent = 100 * row.devices;
  for (const kube::NodeDevice& device : devices.devices) {
    row.memory.count += device.usable;
    if (std::ranges::find(row.models, device.model) == row.models.end()) row.models.push_back(device.model);
  }
  for (const cluster::DeviceBook& book : node.booked) {
    row.memory_used.count += book.memory.count;
    row.compute_used_percent += book.is_exclusive ? 100 : book.promised.basis_points / 100;
    row.slices += book.slices;
  }
  add_pending(row, devices.mode);
  add_pending(row, devices.policy);
  row.placement = text(devices.placement);
  row.enforcement = devices.enforcement;
  row.simulated = devices.simulated;
  return row;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

}  // namespace

NodeList node_rows(const ClusterView& view, std::optional<MemoryUnit> unit) {
  NodeList out{.nodes = {}, .has_all_pods = view.has_all_pods};
  for (const ViewNode& node : view.nodes) {
    out.nodes.push_back(row_of(node));
    if (unit) out.nodes.back().memory_unit = std::string(text(*unit));
  }
  return out;
}

Table table_of(const NodeList& list, Form form) {
  Table out{.headings = {"NAME", "BOOKKEEPER", "MODE", "POLICY", "UNIT", "DEVICES", "MEMORY", "COMPUTE",
                         "SLICES", "PENDING"},
            .rows = {}};
  if (form == Form::wide)
    out.headings.insert(out.headings.end(), {"MODELS", "PLACEMENT", "ENFORCEMENT", "PROBLEM"});
  for (const NodeRow& row : list.nodes) {
    const std::string unknown = list.has_all_pods ? "" : ">= ";
    std::vector<std::string> cells{
        row.name,
        row.bookkeeper,
        row.mode,
        row.policy,
        row.memory_unit.value_or(""),
        row.devices == 0 ? "" : std::to_string(row.devices),
        row.devices == 0
            ? ""
            : fmt::format("{}{}/{}", unknown, text(row.memory_used).c_str(), text(row.memory).c_str()),
        row.devices == 0 ? ""
                         : fmt::format("{}{}%/{}%", unknown, row.compute_used_percent, row.compute_percent),
        row.devices == 0 ? "" : unknown + std::to_string(row.slices),
        row.problem.empty() ? joined(row.pending) : row.problem};
    if (form == Form::wide)
      cells.insert(cells.end(), {joined(row.models), row.placement,
                                 row.enforcement + (row.simulated ? ", simulated" : ""), row.problem});
    out.rows.push_back(std::move(cells));
  }
  return out;
}

}  // namespace carve::kubectl
