// What has been used of a budget, from the account's invoice of the month.
#pragma once

#include "core/utc.h"
#include "wire/api/bill.h"
#include "wire/objects/budget_object.h"

namespace carve::controller {

// `total`: of the account's invoice of this month.
objects::BudgetStatus budget_status(const objects::BudgetSpec&, const api::BillSum& total, const UtcMonth&);

}  // namespace carve::controller
