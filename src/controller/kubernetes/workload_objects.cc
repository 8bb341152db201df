#include "controller/kubernetes/workload_objects.h"

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

}  // namespace

Json owner_reference(const Object& object, bool is_controller) {
  return {{"apiVersion", objects::api_version},
          {"kind", objects::text_of(object.key.kind).kind},
          {"name", object.key.name},
          {"uid", object.uid},
          {"controller", is_controller},
          {"blockOwnerDeletion", is_controller}};
}

void mark_pods(Json& pod_template, const Object& object) {
  Json& labels = pod_template["metadata"]["labels"];
  labels[managed_by_label] = managed_by_carve;
  if (!object.account.empty()) labels[account_label] = object.account;
}

std::string digest_of(const std::string& text) {
  constexpr size_t digits = 16;
  return sha256_hex(text).substr(0, digits);
}

std::string applied_mark(const Object& object) {
  std::string metadata = object.account;
  for (const auto* texts : {&object.labels, &object.annotations}) {
    metadata += '\0';
    for (const auto& [key, value] : *texts) metadata += fmt::format("{}={}\n", key, value);
  }
  return fmt::format("{}-{}", object.generation, digest_of(metadata));
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
    of["ownerReferences"] = Json::array({owner_reference(object, true)});
    if (one["kind"] != "Deployment") continue;
    Json& pods = one["spec"]["template"];
    mark_pods(pods, object);
    if (!form.restarted_at.empty()) pods["metadata"]["annotations"][restarted_annotation] = form.restarted_at;
  }
  return out;
}

}  // namespace carve::controller
