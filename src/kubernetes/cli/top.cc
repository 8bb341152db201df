#include "kubernetes/cli/top.h"

#include <algorithm>
#include <map>

#include "kubernetes/api/answers.h"
#include "kubernetes/api/json_walk.h"
#include "wire/api/json.h"

namespace carve::kubernetes::cli {
namespace {

// Reads on which nodes the pods of a list run, and whether their containers are ready.
class AgentWalk final : public kubernetes::JsonWalk {
 public:
  std::map<std::string, AgentPod> by_node;

 private:
  static bool is_item(std::span<const kubernetes::JsonLevel> path) {
    return path.size() >= 2 && path[0].key == "items" && path[1].is_list;
  }
  void value(std::span<const kubernetes::JsonLevel> path, const std::string& text) override {
    if (!is_item(path)) return;
    path = path.subspan(2);
    if (kubernetes::is_path(path, {"metadata", "name"})) pod_.name = text;
    if (kubernetes::is_path(path, {"spec", "nodeName"})) pod_.node = text;
    if (path.size() == 4 && path[0].key == "status" && path[1].key == "containerStatuses") {
      if (path[3].key == "name") container_ = text;
      if (path[3].key == "ready") is_container_ready_ = text == "true";
    }
  }
  void closed(std::span<const kubernetes::JsonLevel> path) override {
    if (!is_item(path)) return;
    if (path.size() == 5 && path[3].key == "containerStatuses" && path[4].is_list) {
      if (container_ == "agent") is_ready_ = is_container_ready_;
      container_.clear();
      is_container_ready_ = false;
    }
    if (path.size() != 2) return;
    if (!is_ready_) pod_.problem = fmt::format("container agent of pod {} is not ready", pod_.name);
    if (!pod_.node.empty() && (is_ready_ || !by_node.contains(pod_.node))) by_node[pod_.node] = pod_;
    pod_ = {};
    is_ready_ = false;
  }

  AgentPod pod_;
  std::string container_;
  bool is_container_ready_ = false, is_ready_ = false;
};

void add_device(TopList& out, const std::string& node, const api::Device& d) {
  out.devices.push_back({.node = node,
                         .device = d.index,
                         .model = d.name,
                         .memory_used = {d.used_bytes},
                         .memory = {d.usable_bytes},
                         .utilization_percent = d.utilization_percent,
                         .slices = d.slices,
                         .health = std::string(text(d.health.state))});
}

void add_slice(TopList& out, const std::string& node, const api::Slice& s, const std::string& name_space) {
  if (s.state == SliceState::ended) return;
  const PodContainer pod = s.holder && s.holder->pod ? *s.holder->pod : PodContainer{};
  if (!name_space.empty() && pod.namespace_ != name_space) return;
  for (const api::SlicePart& p : s.parts) {
    UsedPart& row = out.slices.emplace_back();
    row = {.namespace_ = pod.namespace_,
           .pod = pod.name,
           .container = pod.container,
           .slice = s.name,
           .node = node,
           .device = p.index,
           .memory_charged = {p.charged_bytes},
           .memory_driver = {p.used_bytes},
           .memory = {p.quota_bytes},
           .compute_percent = p.share_bp / 100,
           .compute_used_percent = {}};
    if (p.compute) row.compute_used_percent = p.compute->achieved_1s_bp / 100;
  }
}

std::string of(Bytes part, Bytes whole) {
  return fmt::format("{}/{}", text(part).c_str(), text(whole).c_str());
}

}  // namespace

Result<std::vector<AgentPod>, std::string> agents_of(std::string_view nodes_json,
                                                     std::string_view pods_json) {
  const auto nodes = kubernetes::read_list_page(nodes_json);
  if (!nodes) return tl::unexpected("the nodes: " + nodes.error());
  AgentWalk pods;
  if (!pods.read(pods_json)) return tl::unexpected("the agents' pods: " + pods.problem());
  std::vector<AgentPod> out;
  for (const kubernetes::ObjectMeta& node : nodes->items) {
    const auto pod = pods.by_node.find(node.name);
    out.push_back(pod != pods.by_node.end()
                      ? pod->second
                      : AgentPod{.node = node.name, .name = "", .problem = "no agent runs on it"});
  }
  std::ranges::sort(out, {}, &AgentPod::node);
  return out;
}

TopList top_rows(const std::vector<AgentAnswer>& answers, const std::string& name_space) {
  TopList out;
  for (const AgentAnswer& answer : answers) {
    auto top = answer.text ? api::read<AgentTop>(*answer.text, api::Reading::lenient)
                           : Result<AgentTop, std::string>(tl::unexpected(answer.text.error()));
    if (!top) {
      out.silent.push_back({answer.node, top.error()});
      continue;
    }
    for (const api::Device& device : top->devices) add_device(out, answer.node, device);
    for (const api::Slice& slice : top->slices) add_slice(out, answer.node, slice, name_space);
  }
  const auto key = [](const UsedPart& row) {
    return std::tie(row.namespace_, row.pod, row.container, row.slice, row.device);
  };
  std::ranges::stable_sort(out.slices, [&](const UsedPart& a, const UsedPart& b) { return key(a) < key(b); });
  return out;
}

Table device_table(const TopList& list) {
  Table out{.headings = {"NODE", "DEVICE", "MODEL", "MEMORY", "UTILIZATION", "SLICES", "HEALTH"}, .rows = {}};
  for (const UsedDevice& row : list.devices)
    out.rows.push_back({row.node, std::to_string(row.device), row.model, of(row.memory_used, row.memory),
                        fmt::format("{}%", row.utilization_percent), std::to_string(row.slices), row.health});
  return out;
}

Table slice_table(const TopList& list, Form form) {
  Table out{.headings = {"NAMESPACE", "POD", "CONTAINER", "NODE", "DEVICE", "CHARGED", "COMPUTE"},
            .rows = {}};
  if (form == Form::wide) out.headings.insert(out.headings.end(), {"DRIVER", "SLICE"});
  for (const UsedPart& row : list.slices) {
    const std::string used = row.compute_used_percent ? fmt::format("{}%", *row.compute_used_percent) : "?";
    const bool has_compute = row.compute_used_percent || row.compute_percent != 0;
    const std::string granted = row.compute_percent == 0 ? "-" : fmt::format("{}%", row.compute_percent);
    out.names.push_back(row.pod.empty() ? "slice/" + row.slice : "pod/" + row.pod);
    out.rows.push_back({row.namespace_, row.pod, row.container, row.node, std::to_string(row.device),
                        of(row.memory_charged, row.memory),
                        has_compute ? fmt::format("{}/{}", used, granted) : ""});
    if (form == Form::wide)
      out.rows.back().insert(out.rows.back().end(), {text(row.memory_driver).c_str(), row.slice});
  }
  return out;
}

}  // namespace carve::kubernetes::cli
