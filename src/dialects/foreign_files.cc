#include "dialects/foreign_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "objects/error_list.h"
#include "wire/api/json_value.h"

namespace carve::dialects {
namespace {

using api::Json;

// Top-level keys of values.yaml in the form that `helm create` generates.
constexpr const char* helm_keys[] = {
    "replicaCount",   "imagePullSecrets", "nameOverride",       "fullnameOverride",
    "serviceAccount", "podAnnotations",   "podSecurityContext", "securityContext",
    "livenessProbe",  "readinessProbe",   "nodeSelector",       "tolerations",
    "affinity",       "ingress",          "autoscaling",        "resources"};

bool has_object(const Json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_object();
}

std::string names_of(const Json& object) {
  constexpr size_t max_names = 4;
  std::string out;
  size_t count = 0;
  for (const auto& [name, value] : object.items())
    if (++count <= max_names) out += (out.empty() ? "" : ", ") + name.substr(0, 40);
  return count > max_names ? out + ", ..." : out;
}

bool is_helm_values(const Json& document) {
  const bool has_repository = has_object(document, "image") && document["image"].contains("repository");
  const auto keys = std::ranges::count_if(helm_keys, [&](const char* key) { return document.contains(key); });
  return (has_repository && keys >= 1) || keys >= 3;
}

}  // namespace

std::optional<api::FieldError> foreign_file_problem(std::string_view json) {
  const auto document = api::parse(json);
  if (!document || !document->is_object() || document->contains("metadata") ||
      document->contains("containers"))
    return std::nullopt;
  const auto problem = [](const char* field, const std::string& value, const std::string& text) {
    return api::FieldError{.field = field, .value = value, .message = fmt::format("{}: {}", field, text)};
  };
  const auto text_at = [&](const char* key) {
    const auto found = document->find(key);
    return found != document->end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (text_at("kind") == "Kustomization" || document->contains("kustomize"))
    return problem("kind", "Kustomization",
                   "this is a kustomize file; apply the manifests: kubectl kustomize DIR | carve apply -f -");
  if (document->contains("kind")) return std::nullopt;
  if (has_object(*document, "services")) {
    const std::string names = names_of((*document)["services"]);
    return problem(
        "services", names,
        fmt::format("this is a Compose file with {}, which Carve does not support; write a Carve Service or "
                    "a Kubernetes manifest for each of them (kompose convert writes manifests)",
                    names.empty() ? "no services" : "the services " + names));
  }
  if (document->contains("apiVersion"))
    return document->contains("version") && document->contains("name")
               ? std::optional(
                     problem("apiVersion", text_at("apiVersion"),
                             "this is the Chart.yaml of a Helm chart; apply its manifests: helm template "
                             "NAME CHART | carve apply -f -"))
               : std::nullopt;
  if (is_helm_values(*document))
    return problem(
        document->contains("replicaCount") ? "replicaCount" : document->begin().key().c_str(),
        names_of(*document),
        "these are the values of a Helm chart; apply its manifests: helm template NAME CHART -f FILE | "
        "carve apply -f -");
  return std::nullopt;
}

std::optional<api::FieldError> helm_template_problem(std::string_view text) {
  for (const std::string_view object : {".Values.", ".Release.", ".Chart.", "include \""}) {
    const size_t at = text.find(object);
    const size_t begin = at == std::string_view::npos ? at : text.rfind("{{", at);
    if (begin == std::string_view::npos ||
        text.substr(begin, at - begin).find("}}") != std::string_view::npos)
      continue;
    return api::FieldError{.field = "",
                           .value = std::string(object),
                           .message =
                               "this is a template of a Helm chart; apply its manifests: helm template "
                               "NAME CHART | carve apply -f -"};
  }
  return std::nullopt;
}

}  // namespace carve::dialects
