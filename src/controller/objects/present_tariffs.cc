#include "controller/objects/present_tariffs.h"

#include "core/invariant.h"
#include "fronts/tariff/tariff_check.h"
#include "wire/api/json.h"

namespace carve::controller {

bill::Tariff stored_tariff(const std::string& text) {
  const auto spec = api::read<objects::TariffSpec>(text, api::Reading::lenient);
  invariant(spec.has_value(), "a stored spec was written by this program");
  auto tariff = fronts::tariff_of(*spec);
  invariant(tariff.has_value(), "a stored tariff was checked");
  return std::move(*tariff);
}

bill::Tariffs present_tariffs(const ObjectRegistry& objects) {
  std::vector<bill::Tariff> all;
  for (const auto& object : objects.list(objects::Kind::tariff)) all.push_back(stored_tariff(object->spec));
  auto tariffs = bill::Tariffs::from(std::move(all));
  invariant(tariffs.has_value(), "stored tariffs go with each other");
  return std::move(*tariffs);
}

}  // namespace carve::controller
