// kubectl carve nodes
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "kubernetes/cli/views.h"

namespace carve::kubernetes::cli {
namespace {

template <class Value>
void add_pending(NodeRow& row, const kubernetes::NodeSetting<Value>& setting) {
  if (!setting.desired || *setting.desired == setting.effective) return;
  std::string blockers;
  for (const std::string& pod : setting.blocked_by) blockers += (blockers.empty() ? "" : ", ") + pod;
  row.pending.push_back(fmt::format("{} -> {}{}", text(setting.effective), text(*setting.desired),
                                    blockers.empty() ? "" : fmt::format(" (blocked by {})", blockers)));
}

std::string label(const kubernetes::ObjectMeta& object, const std::string& key) {
  const auto found = object.labels.find(key);
  return found == object.labels.end() ? "" : found->second;
}

NodeRow row_of(const ViewNode& node) {
  NodeRow row{
      .name = node.object.name, .bookkeeper = label(node.object, "carve.dev/node"), .problem = node.problem};
  if (!node.devices) return row;
  const kubernetes::NodeDevices& devices = *node.devices;
  row.mode = text(devices.mode.effective);
  row.policy = text(devices.policy.effective);
  row.devices = static_cast<uint32_t>(devices.devices.size());
  row.compute_percent = 100 * row.devices;
  for (const kubernetes::NodeDevice& device : devices.devices) {
    row.memory.count += device.usable;
    if (std::ranges::find(row.models, device.model) == row.models.end()) row.models.push_back(device.model);
  }
  for (const fleet::DeviceUse& cached : node.in_use) {
    row.memory_used.count += cached.memory.count;
    row.compute_used_percent += cached.is_exclusive ? 100 : cached.promised.basis_points / 100;
    row.slices += cached.slices;
  }
  add_pending(row, devices.mode);
  add_pending(row, devices.policy);
  row.placement = text(devices.placement);
  row.enforcement = devices.enforcement;
  row.simulated = devices.simulated;
  return row;
}

// Returns the most frequent value among the group's nodes. Ties go to the alphabetically first value.
std::string usual(std::span<const NodeRow> group, std::string NodeRow::*word) {
  std::map<std::string, size_t> counts;
  for (const NodeRow& row : group) ++counts[row.*word];
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
}

// Sorts the rows by group and marks those that differ from the rest of their group.
void mark_groups(std::vector<NodeRow>& rows) {
  std::ranges::stable_sort(rows, {}, &NodeRow::group);
  for (auto begin = rows.begin(); begin != rows.end();) {
    const auto end =
        std::find_if(begin, rows.end(), [&](const NodeRow& row) { return row.group != begin->group; });
    const std::pair<const char*, std::string NodeRow::*> settings[] = {{"mode", &NodeRow::mode},
                                                                       {"policy", &NodeRow::policy}};
    for (const auto& [name, word] : settings) {
      const std::string most = usual({begin, end}, word);
      for (auto row = begin; row != end; ++row)
        if ((*row).*word != most) row->differs.emplace_back(name);
    }
    begin = end;
  }
}

std::string marked(const NodeRow& row, const std::string& word, const char* name) {
  const bool differs = std::ranges::find(row.differs, name) != row.differs.end();
  return differs ? word + " (differs)" : word;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

}  // namespace

NodeList node_rows(const ClusterView& view, std::optional<MemoryUnit> unit, const std::string& by) {
  NodeList out{.nodes = {}, .has_all_pods = view.has_all_pods};
  for (const ViewNode& node : view.nodes) {
    out.nodes.push_back(row_of(node));
    if (unit) out.nodes.back().memory_unit = std::string(text(*unit));
    if (!by.empty()) out.nodes.back().group = label(node.object, by);
  }
  if (!by.empty()) mark_groups(out.nodes);
  return out;
}

Table table_of(const NodeList& list, Form form) {
  Table out{.headings = {"NAME", "BOOKKEEPER", "MODE", "POLICY", "UNIT", "DEVICES", "MEMORY", "COMPUTE",
                         "SLICES", "PENDING"},
            .rows = {}};
  if (form == Form::wide)
    out.headings.insert(out.headings.end(), {"MODELS", "PLACEMENT", "ENFORCEMENT", "PROBLEM"});
  if (!list.nodes.empty() && list.nodes.front().group) out.headings.insert(out.headings.begin(), "GROUP");
  for (const NodeRow& row : list.nodes) {
    const std::string unknown = list.has_all_pods ? "" : ">= ";
    std::vector<std::string> cells{
        row.name,
        row.bookkeeper,
        marked(row, row.mode, "mode"),
        marked(row, row.policy, "policy"),
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
    out.names.push_back("node/" + row.name);
    if (row.group) cells.insert(cells.begin(), *row.group);
    out.rows.push_back(std::move(cells));
  }
  return out;
}

}  // namespace carve::kubernetes::cli
