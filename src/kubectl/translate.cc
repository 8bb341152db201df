#include "kubectl/translate.h"

#include <algorithm>

#include "fronts/documents.h"
#include "fronts/error_list.h"
#include "fronts/pod/admission.h"

namespace carve::kubectl {
namespace {

using api::Json;

constexpr std::string_view kinds_with_template[] = {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet",
                                                    "Job"};

// Returns the pod that a document creates, or null.
Json* pod_in(Json& document) {
  if (!document.is_object() || !document.contains("kind") || !document["kind"].is_string()) return nullptr;
  const auto kind = document["kind"].get<std::string>();
  if (kind == "Pod") return &document;
  if (std::ranges::find(kinds_with_template, kind) == std::end(kinds_with_template)) return nullptr;
  if (!document.contains("spec")) return nullptr;
  Json& spec = document["spec"];
  if (!spec.is_object() || !spec.contains("template") || !spec["template"].is_object()) return nullptr;
  return &spec["template"];
}

}  // namespace

Result<Translation, api::FieldErrors> translate(std::string_view manifests,
                                                const fronts::PodSettings& settings) {
  const auto documents = fronts::documents_of(manifests);
  if (!documents) return tl::unexpected(documents.error());
  Translation out;
  fronts::ErrorList errors;
  for (const std::string& text : *documents) {
    auto document = api::parse(text);
    if (!document) {
      errors.add_sentence("", "", document.error());
      continue;
    }
    if (Json* const pod = pod_in(*document)) {
      auto admitted = fronts::admit(*pod, settings);
      if (!admitted) {
        errors.add_all(admitted.error());
        continue;
      }
      *pod = std::move(admitted->pod);
      out.warnings.insert(out.warnings.end(), admitted->warnings.begin(), admitted->warnings.end());
    }
    out.documents.push_back(document->dump(2, ' ', false, Json::error_handler_t::replace));
  }
  if (!errors.empty()) return tl::unexpected(errors.all());
  return out;
}

}  // namespace carve::kubectl
