// Parses and checks a document of kind Budget.
#pragma once

#include <string_view>

#include "bill/tariff.h"
#include "objects/budget_object.h"
#include "wire/api/json.h"

namespace carve::objects {

inline constexpr size_t max_budget_levels = 10;
inline constexpr uint32_t max_budget_percent = 1000;
inline constexpr bill::Millionths max_budget{1'000'000'000'000 * bill::millionths_per_one};

// Parses the JSON text strictly and returns the budget. Fails with every error.
Result<objects::Budget, api::FieldErrors> read_budget(std::string_view json);

// Returns the limit in a valid spec, in GPU-hours or in money.
bill::Millionths limit_of(const objects::BudgetSpec&);

}  // namespace carve::objects
