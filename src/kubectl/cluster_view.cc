#include "kubectl/cluster_view.h"

#include <fmt/format.h>

#include <algorithm>

namespace carve::kubectl {
namespace {

ViewNode view_of(const kube::ObjectMeta& object, const std::vector<cluster::ClusterPod>& pods) {
  ViewNode out{.object = object, .devices = {}, .state = {}, .problem = "", .booked = {}};
  const auto annotation = object.annotations.find(kube::devices_annotation);
  auto devices = annotation == object.annotations.end()
                     ? Result<kube::NodeDevices, std::string>(tl::unexpected(std::string("no agent yet")))
                     : kube::read_devices(annotation->second);
  if (!devices) {
    out.problem = devices.error();
    return out;
  }
  out.devices = std::move(*devices);
  auto state = cluster::read_node(object);
  if (!state) {
    out.problem = state.error();
    return out;
  }
  out.state = std::move(*state);
  std::vector<const kube::PodSlices*> here;
  for (const cluster::ClusterPod& pod : pods)
    if (pod.slices && pod.slices->node == object.name) here.push_back(&*pod.slices);
  out.booked = cluster::booked(*out.state, here);
  return out;
}

}  // namespace

Result<ClusterView, std::string> read_view(std::string_view nodes_json, std::string_view pods_json) {
  auto nodes = kube::read_list_page(nodes_json);
  if (!nodes) return tl::unexpected("the nodes: " + nodes.error());
  auto pods = kube::read_list_page(pods_json);
  if (!pods) return tl::unexpected("the pods: " + pods.error());
  ClusterView out;
  for (const kube::ObjectMeta& pod : pods->items) out.pods.push_back(cluster::read_pod(pod));
  out.pod_objects = std::move(pods->items);
  std::ranges::sort(nodes->items, {}, &kube::ObjectMeta::name);
  for (const kube::ObjectMeta& node : nodes->items) out.nodes.push_back(view_of(node, out.pods));
  return out;
}

}  // namespace carve::kubectl
