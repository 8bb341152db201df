// An invoice as the API shows it, made from the copies of the usage records in one pass. Its memory does not
// grow with the records, but with the groups and the lines that are asked for.
#pragma once

#include <string>

#include "controller/billing/bill_query.h"
#include "controller/billing/usage_store.h"
#include "wire/api/bill.h"

namespace carve::controller {

inline constexpr size_t max_bill_lines = 100'000;
inline constexpr size_t max_bill_groups = 100'000;
inline constexpr size_t max_refused_records = 100;  // That are named.

// Fails with resource_exhausted beyond the limits. `now` is the moment until which an open record of a node
// that was never seen again counts.
Outcome<api::Bill> make_bill(UsageStore&, const bill::Tariffs&, const BillQuery&, const ledger::Stamp& now);

// Returns the lines as CSV (RFC 4180), with a heading.
std::string csv_of(const std::vector<api::BillLine>&);

}  // namespace carve::controller
