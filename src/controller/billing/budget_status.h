// Computes how much of a budget is used, from the account's invoice of the month.
#pragma once

#include "core/utc.h"
#include "objects/budget_object.h"
#include "wire/api/bill.h"

namespace carve::controller {

// `total` is the sum of the account's invoice for this month.
objects::BudgetStatus budget_status(const objects::BudgetSpec&, const api::BillSum& total, const UtcMonth&);

}  // namespace carve::controller
