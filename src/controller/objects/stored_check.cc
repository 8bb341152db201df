#include "controller/objects/stored_check.h"

#include "controller/objects/kind_table.h"
#include "dialects/application/application_terms.h"
#include "objects/application.h"
#include "objects/rules/service_terms.h"
#include "objects/tariff/tariff_check.h"
#include "objects/tariff_object.h"
#include "wire/api/json.h"

namespace carve::controller {

bool is_valid_service(const Object& object) {
  return objects::terms_of(object.spec.as<objects::ServiceSpec>()).has_value();
}

bool is_valid_application(const Object& object) {
  const auto service = dialects::service_of({.api_version = std::string(objects::api_version),
                                             .kind = "Application",
                                             .metadata = metadata_of(object),
                                             .spec = object.spec.as<objects::ApplicationSpec>(),
                                             .status = {}},
                                            {});
  return service && objects::terms_of(service->spec);
}

bool is_valid_tariff(const Object& object) {
  return objects::tariff_of(object.spec.as<objects::TariffSpec>()).has_value();
}

Outcome<void> check_stored(const Object& object) {
  const auto has_valid_spec = row_of(object.key.kind).has_valid_spec;
  if (object.spec.is_readable() && (has_valid_spec == nullptr || has_valid_spec(object))) return {};
  return failure(FailureKind::failed_precondition, "the spec of {} is not valid", text(object.key));
}

Outcome<void> check_stored_revision(const std::string& uid, const std::string& spec) {
  const auto read = api::read<objects::ServiceSpec>(spec, api::Reading::lenient);
  if (read && objects::terms_of(*read)) return {};
  return failure(FailureKind::failed_precondition, "the stored spec of a revision of {} is not valid", uid);
}

}  // namespace carve::controller
