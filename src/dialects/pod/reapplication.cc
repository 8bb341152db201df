#include "dialects/pod/reapplication.h"

#include <algorithm>

#include "dialects/pod/guards.h"
#include "dialects/pod/keys.h"
#include "dialects/pod/pod_json.h"
#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/quantity.h"
#include "objects/error_list.h"

namespace carve::dialects {
namespace {

using api::Json;

Json* object_in(Json& of, const char* key) {
  if (!of.is_object() || !of.contains(key) || !of[key].is_object()) return nullptr;
  return &of[key];
}
const Json* object_in(const Json& of, const char* key) {
  if (!of.is_object() || !of.contains(key) || !of[key].is_object()) return nullptr;
  return &of[key];
}

std::optional<kubernetes::PodRequest> request_of(const Json& pod) {
  const Json* const metadata = object_in(pod, "metadata");
  const Json* const annotations = metadata == nullptr ? nullptr : object_in(*metadata, "annotations");
  if (annotations == nullptr) return std::nullopt;
  const auto read = kubernetes::read_request(text_member(*annotations, kubernetes::request_annotation));
  return read ? std::optional(*read) : std::nullopt;
}

bool is_same_quantity(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto first = kubernetes::parse_quantity(a), second = kubernetes::parse_quantity(b);
  return first && second && *first == *second;
}

// Removes the parts of the container's request that the manifest repeats.
void take_repeated(Json& container, const std::map<std::string, std::string>& given,
                   objects::ErrorList& errors) {
  Json* const resources = object_in(container, "resources");
  if (resources == nullptr) return;
  const std::string name = text_member(container, "name");
  for (const char* kind : {"limits", "requests"}) {
    Json* const amounts = object_in(*resources, kind);
    if (amounts == nullptr) continue;
    for (const auto& [key, value] : given) {
      const bool is_kept = key == keys::memory || key == keys::compute;  // The pod's own amounts.
      const auto again = amounts->find(key);
      if (is_kept || again == amounts->end()) continue;
      const std::string now = quantity_text(*again);
      if (!is_same_quantity(now, value))
        errors.add("container " + name, now,
                   "{} of a pod cannot be changed ({}, now {}); delete the pod and create it again", key,
                   value, now.substr(0, 40));
      amounts->erase(key);
    }
    if (amounts->empty()) resources->erase(kind);
  }
}

bool is_of_carve(const Json& toleration) { return text_member(toleration, "key") == keys::taint; }

// `kubectl apply` replaces the whole list, so the manifest's list lacks the toleration that was added.
void keep_toleration(Json& spec, const Json& before) {
  if (!before.contains("tolerations") || !before["tolerations"].is_array()) return;
  const Json& old = before["tolerations"];
  if (std::ranges::none_of(old, is_of_carve)) return;
  Json now =
      spec.contains("tolerations") && spec["tolerations"].is_array() ? spec["tolerations"] : Json::array();
  if (std::ranges::any_of(now, is_of_carve)) return;
  for (const Json& each : now)
    if (std::ranges::find(old, each) == old.end()) {
      now.push_back(*std::ranges::find_if(old, is_of_carve));
      spec["tolerations"] = now;
      return;
    }
  spec["tolerations"] = old;  // Kept in the original order, because Kubernetes compares the lists.
}

}  // namespace

Result<Json, api::FieldErrors> reapplied(const Json& pod, const Json& before) {
  const auto request = request_of(before);
  const Json* const old_spec = object_in(before, "spec");
  Json out = pod;
  Json* const spec = object_in(out, "spec");
  if (!request || old_spec == nullptr || spec == nullptr) return out;
  objects::ErrorList errors;
  for (const char* list : lists_with_resources) {
    if (!spec->contains(list) || !(*spec)[list].is_array()) continue;
    for (Json& container : (*spec)[list])
      if (const auto given = request->given.find(text_member(container, "name"));
          given != request->given.end())
        take_repeated(container, given->second, errors);
  }
  if (!errors.empty()) return tl::unexpected(errors.all());
  if (text_member(*spec, "schedulerName") == default_scheduler)
    (*spec)["schedulerName"] = text_member(*old_spec, "schedulerName");
  keep_toleration(*spec, *old_spec);
  return out;
}

}  // namespace carve::dialects
