#include "controller/objects/service_form.h"

#include "core/invariant.h"
#include "fronts/application/application_terms.h"
#include "fronts/service_terms.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

objects::ServiceSpec service_form_of_application(const Object& object) {
  auto spec = api::read<objects::ApplicationSpec>(object.spec, api::Reading::lenient);
  invariant(spec.has_value(), "a stored spec was written by this program");
  const auto service = fronts::service_of({.api_version = std::string(objects::api_version),
                                           .kind = "Application",
                                           .metadata = metadata_of(object),
                                           .spec = std::move(*spec),
                                           .status = {}},
                                          {});
  invariant(service.has_value(), "a stored application was checked");
  return service->spec;
}

}  // namespace

objects::ServiceSpec service_form(const Object& object) {
  if (object.key.kind == objects::Kind::application) return service_form_of_application(object);
  auto spec = api::read<objects::ServiceSpec>(object.spec, api::Reading::lenient);
  invariant(spec.has_value(), "a stored spec was written by this program");
  return std::move(*spec);
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

std::optional<api::SliceRequest> slice_terms(const objects::ServiceSpec& spec) {
  const auto terms = fronts::terms_of(spec);
  invariant(terms.has_value(), "a stored spec was checked");
  if (!terms->gpu) return std::nullopt;
  const fronts::GpuTerms& gpu = *terms->gpu;
  return api::SliceRequest{.memory_bytes = gpu.memory_bytes,
                           .memory_bp = gpu.memory_bp,
                           .share_bp = gpu.share_bp,
                           .devices = gpu.devices,
                           .exclusive = gpu.exclusive,
                           .policy = gpu.policy,
                           .isolation = gpu.isolation,
                           .memory_units = gpu.memory_units};
}

workload::HostResources host_request(const objects::ServiceSpec& spec) {
  const auto terms = fronts::terms_of(spec);
  invariant(terms.has_value(), "a stored spec was checked");
  return {.cpu_milli = terms->cpu_request_milli, .memory_bytes = terms->memory_request_bytes};
}

}  // namespace carve::controller
