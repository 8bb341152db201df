// Tariffs and budgets, and the invoices that they give.
#pragma once

#include <optional>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/api/route.h"
#include "controller/objects/submission.h"

namespace carve::controller {

http::Response get_bill(const Call&);
http::Response get_bill_line(const Call&);
http::Response delete_price(const Call&);  // A tariff or a budget, by the kind of the call.

// Returns the refusal of submissions whose tariffs do not go with the others: the same moment, another
// currency.
std::optional<http::Response> refused_by_tariffs(const Call&, const std::vector<Submission>&);

}  // namespace carve::controller
