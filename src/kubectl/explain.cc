// kubectl carve explain
#include "kubectl/explain.h"

#include <algorithm>

#include "fronts/error_list.h"
#include "kubectl/pod_documents.h"
#include "kubectl/translate.h"
#include "wire/api/json_value.h"

namespace carve::kubectl {
namespace {

using api::Json;

constexpr Strategy any_strategy = Strategy::binpack;  // What fits does not depend on it.

Explanation explained(cluster::Books& books, const ClusterView& view, const std::string& name,
                      const std::string& uid) {
  Explanation out{.pod = name, .sentence = books.explain(uid), .nodes = {}};
  std::vector<std::string_view> names;
  for (const ViewNode& node : view.nodes) names.push_back(node.object.name);
  const auto refusals = books.filter(uid, names);
  for (size_t i = 0; i < names.size(); ++i)
    if (refusals[i].empty()) out.nodes.emplace_back(names[i]);
  return out;
}

// Returns the request that the translation wrote; empty: the pod asks for no slice.
std::string request_of(const Json& pod) {
  const Json::json_pointer at("/metadata/annotations/carve.dev~1request");
  return pod.contains(at) && pod.at(at).is_string() ? pod.at(at).get<std::string>() : "";
}

}  // namespace

cluster::Books books_of(const ClusterView& view) {
  cluster::Books out(any_strategy);
  for (const ViewNode& node : view.nodes) out.set_node(node.object);
  for (const kube::ObjectMeta& pod : view.pod_objects) out.set_pod(pod);
  return out;
}

Result<Explanation, std::string> explain_pod(const ClusterView& view, const std::string& name_space,
                                             const std::string& name) {
  const auto found = std::ranges::find_if(view.pods, [&](const cluster::ClusterPod& pod) {
    return pod.name_space == name_space && pod.name == name;
  });
  if (found == view.pods.end())
    return tl::unexpected(
        fmt::format("pod {}/{} asks for no slice, has ended, or does not exist", name_space, name));
  if (found->slices)
    return Explanation{.pod = found->full_name(),
                       .sentence = fmt::format("it runs on node {}", found->slices->node),
                       .nodes = {found->slices->node}};
  cluster::Books books = books_of(view);
  return explained(books, view, found->full_name(), found->uid);
}

Result<std::vector<Explanation>, api::FieldErrors> explain_manifests(const ClusterView& view,
                                                                     std::string_view manifests,
                                                                     const fronts::PodSettings& settings) {
  const auto translated = translate(manifests, settings);
  if (!translated) return tl::unexpected(translated.error());
  cluster::Books books = books_of(view);
  std::vector<Explanation> out;
  for (const std::string& text : translated->documents) {
    auto document = api::parse(text);
    if (!document) continue;  // It was written by translate().
    for (const PodDocument& each : pods_in(*document)) {
      kube::ObjectMeta pod;
      pod.name_space = "manifest";
      pod.name = each.name;
      pod.uid = fmt::format("manifest {}", out.size());
      pod.annotations[kube::request_annotation] = request_of(*each.pod);
      if (!books.know_pod(pod)) continue;
      out.push_back(explained(books, view, pod.name, pod.uid));
      books.remove_pod(pod.uid);
    }
  }
  return out;
}

}  // namespace carve::kubectl
