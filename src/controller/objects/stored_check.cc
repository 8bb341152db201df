#include "controller/objects/stored_check.h"

#include "fronts/application/application_terms.h"
#include "fronts/service_terms.h"
#include "fronts/tariff/tariff_check.h"
#include "wire/api/json.h"
#include "wire/objects/application.h"
#include "wire/objects/budget_object.h"
#include "wire/objects/job_object.h"
#include "wire/objects/node_object.h"
#include "wire/objects/pool_object.h"
#include "wire/objects/queue_object.h"
#include "wire/objects/ray_cluster_object.h"
#include "wire/objects/tariff_object.h"

namespace carve::controller {
namespace {

template <class T>
auto read_spec(const std::string& text) {
  return api::read<T>(text, api::Reading::lenient);
}

bool is_service(const std::string& text) {
  const auto spec = read_spec<objects::ServiceSpec>(text);
  return spec && fronts::terms_of(*spec);
}

bool is_application(const Object& object) {
  auto spec = read_spec<objects::ApplicationSpec>(object.spec);
  if (!spec) return false;
  const auto service = fronts::service_of({.api_version = std::string(objects::api_version),
                                           .kind = "Application",
                                           .metadata = metadata_of(object),
                                           .spec = std::move(*spec),
                                           .status = {}},
                                          {});
  return service && fronts::terms_of(service->spec);
}

bool is_tariff(const std::string& text) {
  const auto spec = read_spec<objects::TariffSpec>(text);
  return spec && fronts::tariff_of(*spec);
}

bool is_sound(const Object& object) {
  using objects::Kind;
  switch (object.key.kind) {
    case Kind::service: return is_service(object.spec);
    case Kind::application: return is_application(object);
    case Kind::node: return read_spec<objects::NodeSpec>(object.spec).has_value();
    case Kind::pool: return read_spec<objects::PoolSpec>(object.spec).has_value();
    case Kind::queue: return read_spec<objects::QueueSpec>(object.spec).has_value();
    case Kind::job: return read_spec<objects::JobSpec>(object.spec).has_value();
    case Kind::tariff: return is_tariff(object.spec);
    case Kind::budget: return read_spec<objects::BudgetSpec>(object.spec).has_value();
    case Kind::ray_cluster: return read_spec<objects::RayClusterSpec>(object.spec).has_value();
  }
  return false;
}

}  // namespace

Outcome<void> check_stored(const Object& object) {
  if (is_sound(object)) return {};
  return failure(FailureKind::failed_precondition, "the spec of {} is none", text(object.key));
}

Outcome<void> check_stored_revision(const std::string& uid, const std::string& spec) {
  if (is_service(spec)) return {};
  return failure(FailureKind::failed_precondition, "the spec of a revision of {} is none", uid);
}

}  // namespace carve::controller
