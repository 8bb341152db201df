// Holders of slices in a period, and how much they held, from the copies of the usage records. An allocation is a slice from its grant
// to its end. The records are kept without a limit, so the period may be as long ago as the first record.
#pragma once

#include "controller/billing/bill_query.h"
#include "controller/billing/usage_store.h"
#include "wire/api/allocations.h"

namespace carve::controller {

inline constexpr size_t max_inventory_days = 400;

// Fails with resource_exhausted if there are more groups than an invoice may have. Needs 4 bytes for each
// allocation, to find the medians. `tariffs` and `now` as in make_bill().
Outcome<api::Allocations> make_allocations(UsageStore&, const bill::Tariffs&, const BillQuery&,
                                           const ledger::Stamp& now);

}  // namespace carve::controller
