// Parses and checks a document of kind Tariff, and converts it into the types of bill/tariff.h.
#pragma once

#include <string_view>

#include "bill/tariff.h"
#include "objects/tariff_object.h"
#include "wire/api/json.h"

namespace carve::objects {

inline constexpr size_t max_tariff_units = 256;

// Parses the JSON text strictly and returns the tariff. Fails with every error.
Result<objects::Tariff, api::FieldErrors> read_tariff(std::string_view json);

// Returns the tariff in the spec. Models that it does not list get the shipped units. Fails with every error.
Result<bill::Tariff, api::FieldErrors> tariff_of(const objects::TariffSpec&);

}  // namespace carve::objects
