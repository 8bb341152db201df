#include "kubernetes/cli/claim_templates.h"

#include <fmt/format.h>

#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/quantity.h"

namespace carve::kubernetes::cli {
namespace {

using api::Json;

constexpr std::string_view prefix = "carve.dev/";
constexpr size_t max_owner_bytes = 180;  // A template's name has at most 253 bytes, a container's 63.

// Removes the members whose keys belong to Carve.
void remove_ours(Json& object, const char* key) {
  if (!object.contains(key) || !object[key].is_object()) return;
  Json kept = Json::object();
  for (const auto& [name, value] : object[key].items())
    if (!name.starts_with(prefix)) kept[name] = value;
  if (kept.empty())
    object.erase(key);
  else
    object[key] = std::move(kept);
}

Json template_of(const std::string& name, const RequestedSlice& slice) {
  Json exactly = {{"deviceClassName", "carve.dev"}};
  if (slice.amounts.devices != 1) exactly["count"] = slice.amounts.devices;
  Json amounts = Json::object();
  if (slice.amounts.memory_bytes)
    amounts["memory"] = kubernetes::quantity_of_bytes(*slice.amounts.memory_bytes);
  if (slice.amounts.share_bp.value_or(0) != 0)
    amounts["compute"] = std::to_string(*slice.amounts.share_bp / 100);
  if (!amounts.empty()) exactly["capacity"] = {{"requests", amounts}};
  Json devices = {{"requests", {{{"name", "gpu"}, {"exactly", exactly}}}}};
  Json parameters = {{"apiVersion", "carve.dev/v1"}, {"kind", "SliceParameters"}};
  if (slice.amounts.latency_class) parameters["latencyClass"] = text(*slice.amounts.latency_class);
  if (slice.amounts.isolation) parameters["isolation"] = text(*slice.amounts.isolation);
  if (parameters.size() > 2)
    devices["config"] = {{{"opaque", {{"driver", "carve.dev"}, {"parameters", parameters}}}}};
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaimTemplate"},
          {"metadata", {{"name", name}}},
          {"spec", {{"spec", {{"devices", devices}}}}}};
}

// Removes what only the extender needs.
void remove_extender(Json& pod) {
  if (pod.contains("metadata"))
    for (const char* key : {"labels", "annotations"}) remove_ours(pod["metadata"], key);
  Json& spec = pod["spec"];
  remove_ours(spec, "nodeSelector");
  if (spec.value("schedulerName", "") == "carve-scheduler") spec.erase("schedulerName");
  for (const char* kind : {"containers", "initContainers"}) {
    if (!spec.contains(kind)) continue;
    for (Json& container : spec[kind]) {
      if (!container.contains("resources")) continue;
      for (const char* key : {"limits", "requests"}) remove_ours(container["resources"], key);
    }
  }
}

}  // namespace

Result<std::vector<Json>, std::string> use_claims(Json& pod, const std::string& owner) {
  std::vector<Json> out;
  const Json::json_pointer at("/metadata/annotations/carve.dev~1request");
  if (!pod.contains(at) || !pod.at(at).is_string()) return out;
  const auto request = kubernetes::read_request(pod.at(at).get<std::string>());
  if (!request) return tl::unexpected(request.error());
  for (const auto& [container, slice] : request->containers)
    if (!slice.amounts.parts.empty())
      return tl::unexpected(
          fmt::format("container {}: a claim has the same amounts on each of its devices; use one "
                      "claim with several requests",
                      container));
  remove_extender(pod);
  Json& spec = pod["spec"];
  for (const auto& [container, slice] : request->containers) {
    const std::string name =
        fmt::format("{}-{}", owner.empty() ? "pod" : owner.substr(0, max_owner_bytes), container);
    out.push_back(template_of(name, slice));
    const std::string claim = "gpu-" + container;
    spec["resourceClaims"].push_back({{"name", claim.substr(0, 63)}, {"resourceClaimTemplateName", name}});
    for (const char* kind : {"containers", "initContainers"}) {
      if (!spec.contains(kind)) continue;
      for (Json& each : spec[kind])
        if (each.value("name", "") == container)
          each["resources"]["claims"].push_back({{"name", claim.substr(0, 63)}});
    }
  }
  return out;
}

}  // namespace carve::kubernetes::cli
