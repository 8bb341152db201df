// A document of kind Tariff, read and checked, as a value of bill/tariff.h.
#pragma once

#include <string_view>

#include "bill/tariff.h"
#include "wire/api/json.h"
#include "wire/objects/tariff_object.h"

namespace carve::fronts {

inline constexpr size_t max_tariff_units = 256;

// Reads the JSON text strictly and returns the tariff, or every error.
Result<objects::Tariff, api::FieldErrors> read_tariff(std::string_view json);

// Returns the tariff of the spec, with the shipped units of the models that it does not name, or every error.
Result<bill::Tariff, api::FieldErrors> tariff_of(const objects::TariffSpec&);

}  // namespace carve::fronts
