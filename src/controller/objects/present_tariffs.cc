#include "controller/objects/present_tariffs.h"

#include "core/invariant.h"
#include "objects/tariff/tariff_check.h"

namespace carve::controller {

bill::Tariff tariff_of(const TypedJson& spec) {
  auto tariff = objects::tariff_of(spec.as<objects::TariffSpec>());
  invariant(tariff.has_value(), "a stored tariff was checked");
  return std::move(*tariff);
}

bill::Tariffs present_tariffs(const ObjectRegistry& objects) {
  std::vector<bill::Tariff> all;
  for (const auto& object : objects.list(objects::Kind::tariff)) all.push_back(tariff_of(object->spec));
  auto tariffs = bill::Tariffs::from(std::move(all));
  invariant(tariffs.has_value(), "the stored tariffs are consistent with each other");
  return std::move(*tariffs);
}

}  // namespace carve::controller
