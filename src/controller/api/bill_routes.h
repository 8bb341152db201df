// The routes of tariffs and budgets, and of the invoices made from them.
#pragma once

#include <optional>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/api/route.h"
#include "controller/objects/submission.h"

namespace carve::controller {

http::Response get_bill(const Call&);
http::Response get_bill_line(const Call&);
http::Response get_allocations(const Call&);

// Returns the rejection of submissions whose tariffs conflict with other tariffs because they have the same
// start or a different currency.
std::optional<http::Response> refused_by_tariffs(const Call&, const std::vector<Submission>&);

}  // namespace carve::controller
