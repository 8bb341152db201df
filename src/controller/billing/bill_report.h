// An invoice as the API shows it, made in one pass over the copies of the usage records. Its memory grows
// with the groups and the requested lines, not with the records.
#pragma once

#include <string>

#include "controller/billing/bill_query.h"
#include "controller/billing/usage_store.h"
#include "wire/api/bill.h"

namespace carve::controller {

inline constexpr size_t max_bill_lines = 100'000;
inline constexpr size_t max_bill_groups = 100'000;
inline constexpr size_t max_refused_records = 100;  // Limit of the records that are named.

// Fails with resource_exhausted beyond the limits. An open record of a node that was never seen again counts
// until `now`.
Outcome<api::Bill> make_bill(UsageStore&, const bill::Tariffs&, const BillQuery&, const ledger::Stamp& now);

// Returns the lines as CSV (RFC 4180), with a heading.
std::string csv_of(const std::vector<api::BillLine>&);
// Returns one row per group as CSV, without the total.
std::string csv_of_sums(const api::Bill&);

}  // namespace carve::controller
