#include "controller/objects/service_form.h"

#include "core/invariant.h"
#include "dialects/application/application_terms.h"
#include "objects/rules/service_terms.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

objects::ServiceSpec service_form_of_application(const Object& object) {
  const auto service = dialects::service_of({.api_version = std::string(objects::api_version),
                                             .kind = "Application",
                                             .metadata = metadata_of(object),
                                             .spec = object.spec.as<objects::ApplicationSpec>(),
                                             .status = {}},
                                            {});
  invariant(service.has_value(), "a stored application was checked");
  return service->spec;
}

}  // namespace

objects::ServiceSpec service_form(const Object& object) {
  if (object.key.kind == objects::Kind::application) return service_form_of_application(object);
  return object.spec.as<objects::ServiceSpec>();
}

std::string revision_spec(const objects::ServiceSpec& spec) {
  objects::ServiceSpec fixed = spec;
  fixed.replicas = 1;
  fixed.stopped = false;
  fixed.update = {};
  fixed.autoscale.reset();
  fixed.source = {};
  return api::write(fixed);
}

NodeChoice node_choice(const objects::ServiceSpec& spec) {
  return {.pool = spec.pool, .tolerations = spec.tolerations};
}

std::optional<Amounts> slice_terms(const objects::ServiceSpec& spec) {
  const auto terms = objects::terms_of(spec);
  invariant(terms.has_value(), "a stored spec was checked");
  return terms->gpu;
}

workload::HostResources host_request(const objects::ServiceSpec& spec) {
  const auto terms = objects::terms_of(spec);
  invariant(terms.has_value(), "a stored spec was checked");
  return {.cpu_milli = terms->cpu_request_milli, .memory_bytes = terms->memory_request_bytes};
}

}  // namespace carve::controller
