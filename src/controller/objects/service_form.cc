#include "controller/objects/service_form.h"

#include "core/invariant.h"
#include "fronts/application/application_terms.h"
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

}  // namespace carve::controller
