// An invoice as the API shows it, computed in one pass over the copies of the usage records. The memory
// needed grows with the number of groups and requested lines, not with the number of records.
#pragma once

#include <string>

#include "controller/billing/bill_query.h"
#include "controller/billing/usage_store.h"
#include "wire/api/bill.h"

namespace carve::controller {

inline constexpr size_t max_bill_lines = 100'000;
inline constexpr size_t max_bill_groups = 100'000;
inline constexpr size_t max_refused_records = 100;  // Maximum number of rejected records that are listed.

// Fails with resource_exhausted if a limit is exceeded. An open record of a node that was never seen again is
// counted until `now`.
Outcome<api::Bill> make_bill(UsageStore&, const bill::Tariffs&, const BillQuery&, const ledger::Stamp& now);

// Returns the lines as CSV (RFC 4180) with a heading.
std::string csv_of(const std::vector<api::BillLine>&);
// Returns one row per group as CSV, without the total.
std::string csv_of_sums(const api::Bill&);

}  // namespace carve::controller
