#include "controller/kubernetes/workload_objects.h"

#include <algorithm>

#include "controller/kubernetes/custom_object.h"
#include "controller/objects/secret_text.h"
#include "controller/objects/service_form.h"
#include "core/invariant.h"
#include "render/manifests.h"

namespace carve::controller {
namespace {

using api::Json;

// The annotation of `kubectl rollout restart`: another time replaces all pods.
constexpr const char* restarted_annotation = "kubectl.kubernetes.io/restartedAt";
constexpr size_t mark_digits = 16;

Json owner_of(const Object& object) {
  return {{"apiVersion", objects::api_version},
          {"kind", objects::text_of(object.key.kind).kind},
          {"name", object.key.name},
          {"uid", object.uid},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

// Marks the pods, so that a watch selects them and their usage is billed to the account.
void mark_pods(Json& pods, const Object& object, const std::string& restarted_at) {
  pods["metadata"]["labels"][managed_by_label] = managed_by_carve;
  if (!object.account.empty()) pods["metadata"]["labels"][account_label] = object.account;
  if (!restarted_at.empty()) pods["metadata"]["annotations"][restarted_annotation] = restarted_at;
}

}  // namespace

std::string applied_mark(const Object& object) {
  std::string metadata = object.account;
  for (const auto* texts : {&object.labels, &object.annotations}) {
    metadata += '\0';
    for (const auto& [key, value] : *texts) metadata += fmt::format("{}={}\n", key, value);
  }
  return fmt::format("{}-{}", object.generation, sha256_hex(metadata).substr(0, mark_digits));
}

std::string pod_selector(const Object& object) {
  return fmt::format("app.kubernetes.io/name={},{}={}", object.key.name, managed_by_label, managed_by_carve);
}

Result<OwnedObjects, api::FieldErrors> owned_objects(const Object& object) {
  invariant(objects::text_of(object.key.kind).is_workload,
            "only services and applications have such objects");
  const objects::ServiceSpec form = service_form(object);
  if (form.run.image.empty())
    return tl::unexpected(api::FieldErrors{
        {.field = "spec.run.image",
         .value = "",
         .message = "spec.run.image: is required, because Kubernetes runs only containers"}});
  objects::Metadata metadata = metadata_of(object);
  metadata.account.clear();  // The label of the pods names the account.
  auto rendered = render::objects_of(metadata, form);
  if (!rendered) return tl::unexpected(std::move(rendered.error()));
  OwnedObjects out{.objects = std::move(rendered->objects), .warnings = std::move(rendered->warnings)};
  for (Json& one : out.objects) {
    Json& of = one["metadata"];
    of["namespace"] = object.key.namespace_;
    of["labels"][managed_by_label] = managed_by_carve;
    of["annotations"][applied_annotation] = applied_mark(object);
    of["ownerReferences"] = Json::array({owner_of(object)});
    if (one["kind"] == "Deployment") mark_pods(one["spec"]["template"], object, form.restarted_at);
  }
  return out;
}

std::string path_of(const Json& object, bool with_name) {
  const std::string version = object["apiVersion"].get<std::string>();
  const std::string kind = object["kind"].get<std::string>();
  std::string plural = kind + "s";
  std::ranges::transform(plural, plural.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string out = fmt::format("{}/{}/namespaces/{}/{}", version == "v1" ? "/api" : "/apis", version,
                                object["metadata"]["namespace"].get<std::string>(), plural);
  return with_name ? out + "/" + object["metadata"]["name"].get<std::string>() : out;
}

}  // namespace carve::controller
