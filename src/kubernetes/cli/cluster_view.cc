#include "kubernetes/cli/cluster_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kubernetes/api/json_walk.h"

namespace carve::kubernetes::cli {
namespace {

// Collects the names of the nodes whose kubelet offers no slot: carve-kubelet does not run there.
class SlotWalk final : public kubernetes::JsonWalk {
 public:
  std::set<std::string> without;

 private:
  void value(std::span<const kubernetes::JsonLevel> path, const std::string& text) override {
    if (path.size() < 4 || path[0].key != "items" || !path[1].is_list) return;
    path = path.subspan(2);
    if (kubernetes::is_path(path, {"metadata", "name"})) name_ = text;
    if (path.size() != 3 || path[0].key != "status" || path[1].key != "allocatable") return;
    has_resources_ = true;
    has_slots_ |= path[2].key == "carve.dev/slot" && text != "0";
  }
  void closed(std::span<const kubernetes::JsonLevel> path) override {
    if (path.size() != 2 || path[0].key != "items") return;
    if (has_resources_ && !has_slots_) without.insert(name_);
    has_resources_ = has_slots_ = false;
  }

  std::string name_;
  bool has_resources_ = false, has_slots_ = false;
};

ViewNode view_of(const kubernetes::ObjectMeta& object, const std::vector<coordinator::ClusterPod>& pods) {
  ViewNode out{.object = object, .devices = {}, .state = {}, .problem = "", .in_use = {}};
  const auto annotation = object.annotations.find(kubernetes::devices_annotation);
  auto devices =
      annotation == object.annotations.end()
          ? Result<kubernetes::NodeDevices, std::string>(tl::unexpected(std::string("no agent yet")))
          : kubernetes::read_devices(annotation->second);
  if (!devices) {
    out.problem = devices.error();
    return out;
  }
  out.devices = std::move(*devices);
  auto state = fleet::read_node(object);
  if (!state) {
    out.problem = state.error();
    return out;
  }
  out.state = std::move(*state);
  std::vector<const kubernetes::PodSlices*> here;
  for (const coordinator::ClusterPod& pod : pods)
    if (pod.slices && pod.slices->node == object.name) here.push_back(&*pod.slices);
  out.in_use = fleet::device_uses(*out.state, here);
  return out;
}

}  // namespace

Result<ClusterView, std::string> read_view(std::string_view nodes_json, std::string_view pods_json) {
  auto nodes = kubernetes::read_list_page(nodes_json);
  if (!nodes) return tl::unexpected("the nodes: " + nodes.error());
  auto pods = kubernetes::read_list_page(pods_json);
  if (!pods) return tl::unexpected("the pods: " + pods.error());
  SlotWalk slots;
  if (!slots.read(nodes_json)) return tl::unexpected("the nodes: " + slots.problem());
  ClusterView out;
  for (const kubernetes::ObjectMeta& pod : pods->items) out.pods.push_back(coordinator::read_pod(pod));
  out.pod_objects = std::move(pods->items);
  std::ranges::sort(nodes->items, {}, &kubernetes::ObjectMeta::name);
  for (const kubernetes::ObjectMeta& node : nodes->items) {
    ViewNode& view = out.nodes.emplace_back(view_of(node, out.pods));
    const auto label = node.labels.find("carve.dev/node");
    view.is_dra = label != node.labels.end() && label->second == "dra";
    view.has_slots = !slots.without.contains(node.name) && !view.is_dra;
    if (!view.has_slots && !view.is_dra && view.problem.empty())
      view.problem = "kubelet does not advertise carve.dev/slot; check the carve-agent pod on this node";
  }
  return out;
}

}  // namespace carve::kubernetes::cli
