// kubectl carve explain
#include "kubernetes/cli/explain.h"

#include <algorithm>

#include "kubernetes/cli/pod_documents.h"
#include "kubernetes/cli/translate.h"
#include "kubernetes/coordinator/cache/decisions.h"
#include "kubernetes/coordinator/cache/explanation.h"
#include "objects/error_list.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::cli {
namespace {

using api::Json;

constexpr Strategy any_strategy = Strategy::binpack;  // The strategy does not affect whether a pod fits.
constexpr unsigned max_explained_replicas = 1000;

Explanation explained(coordinator::Cache& cache, const ClusterView& view, const std::string& name,
                      const std::string& uid) {
  Explanation out{.pod = name, .message = explain_waiting(cache, uid), .nodes = {}};
  std::vector<std::string_view> names;
  for (const ViewNode& node : view.nodes)
    if (!node.is_dra) names.push_back(node.object.name);
  const auto refusals = filter_nodes(cache, uid, names);
  for (size_t i = 0; i < names.size(); ++i)
    if (refusals[i].empty()) out.nodes.emplace_back(names[i]);
  for (const ViewNode& node : view.nodes)
    if (!node.has_slots && !node.is_dra)
      out.message += fmt::format("; node {}: {}", node.object.name, node.problem);
  return out;
}

// Places the replicas one after another, as the coordinator would.
Explanation explained_replicas(coordinator::Cache& cache, const ClusterView& view,
                               const PodDocument& document, const kubernetes::ObjectMeta& first) {
  Explanation out;
  const unsigned replicas = std::min(document.replicas, max_explained_replicas);
  unsigned placed = 0;
  for (; placed < replicas; ++placed) {
    kubernetes::ObjectMeta pod = first;
    pod.uid += fmt::format(" {}", placed);
    if (!cache.know_pod(pod)) return out;
    Explanation one = explained(cache, view, pod.name, pod.uid);
    if (document.replicas == 1) out = one;
    if (one.nodes.empty()) {
      out.message = one.message;
      break;
    }
    const std::vector<std::string_view> nodes(one.nodes.begin(), one.nodes.end());
    const auto scores = prioritize_nodes(cache, pod.uid, nodes);
    const auto best = static_cast<size_t>(std::ranges::max_element(scores) - scores.begin());
    const std::string node = one.nodes[best];
    if (!reserve_devices(cache, pod.uid, node)) break;
    if (document.replicas > 1 && std::ranges::find(out.nodes, node) == out.nodes.end())
      out.nodes.push_back(node);
  }
  out.pod = first.name;
  if (document.replicas == 1) return out;
  const std::string fit = fmt::format("{} of {} replicas fit", placed, document.replicas);
  if (placed == document.replicas)
    out.message = fit;
  else if (placed == max_explained_replicas)
    out.message = fmt::format("{}; only {} were tried", fit, max_explained_replicas);
  else
    out.message = fmt::format("{}. The next one: {}", fit, out.message);
  return out;
}

// Returns the request that the webhook would write. Empty if the pod requests no slice.
std::string request_of(const Json& pod) {
  const Json::json_pointer at("/metadata/annotations/carve.dev~1request");
  return pod.contains(at) && pod.at(at).is_string() ? pod.at(at).get<std::string>() : "";
}

}  // namespace

coordinator::Cache cache_of(const ClusterView& view) {
  coordinator::Cache out(any_strategy);
  for (const ViewNode& node : view.nodes)
    if (node.has_slots) out.set_node(node.object);
  for (const kubernetes::ObjectMeta& pod : view.pod_objects) out.set_pod(pod);
  return out;
}

std::string newest_reason(std::string_view events_json) {
  const auto list = api::parse(events_json, api::Decimals::as_doubles, 64);
  const auto items = list && list->is_object() ? list->find("items") : Json::const_iterator();
  std::string out, newest;
  if (!list || !list->is_object() || items == list->end() || !items->is_array()) return out;
  const auto text_at = [](const Json& event, const char* key) {
    return event.is_object() && event.contains(key) && event[key].is_string() ? event[key].get<std::string>()
                                                                              : std::string();
  };
  for (const Json& event : *items) {
    if (text_at(event, "reason") != "CarveInsufficientCapacity" || text_at(event, "eventTime") < newest)
      continue;
    newest = text_at(event, "eventTime");
    out = text_at(event, "note");
  }
  return out;
}

Result<Explanation, std::string> explain_pod(const ClusterView& view, const std::string& name_space,
                                             const std::string& name) {
  const auto found = std::ranges::find_if(view.pods, [&](const coordinator::ClusterPod& pod) {
    return pod.name_space == name_space && pod.name == name;
  });
  if (found == view.pods.end())
    return tl::unexpected(
        fmt::format("pod {}/{} requests no slice, has ended, or does not exist", name_space, name));
  if (found->slices)
    return Explanation{.pod = found->full_name(),
                       .message = fmt::format("bound to node {}", found->slices->node),
                       .nodes = {found->slices->node}};
  coordinator::Cache cache = cache_of(view);
  return explained(cache, view, found->full_name(), found->uid);
}

Result<std::vector<Explanation>, api::FieldErrors> explain_manifests(const ClusterView& view,
                                                                     std::string_view manifests,
                                                                     const dialects::PodSettings& settings) {
  const auto translated = translate(manifests, settings);
  if (!translated) return tl::unexpected(translated.error());
  coordinator::Cache cache = cache_of(view);
  std::vector<Explanation> out;
  for (const std::string& text : translated->documents) {
    auto document = api::parse(text);
    if (!document) continue;  // Always valid, because translate() wrote it.
    for (const PodDocument& each : pods_in(*document)) {
      kubernetes::ObjectMeta pod;
      pod.name_space = "manifest";
      pod.name = each.name;
      pod.uid = fmt::format("manifest {}", out.size());
      pod.annotations[kubernetes::request_annotation] = request_of(*each.pod);
      if (!cache.know_pod(pod)) continue;
      cache.remove_pod(pod.uid);
      out.push_back(explained_replicas(cache, view, each, pod));
    }
  }
  return out;
}

}  // namespace carve::kubernetes::cli
