// Tariffs, budgets and invoices on the command line.
#pragma once

#include <string>
#include <vector>

#include "cli/services.h"
#include "cli/verbs.h"

namespace carve::cli {

constexpr bool is_price(objects::Kind kind) {
  return kind == objects::Kind::tariff || kind == objects::Kind::budget;
}

// `carve get|describe tariffs|budgets`.
void get_prices(Context&, const ObjectName&, const std::string& output);
void describe_price(Context&, const ObjectName&);

// Returns the row for a tariff or a budget from its JSON.
const std::vector<std::string>& price_heading(objects::Kind);
Result<std::vector<std::string>, std::string> price_cells(objects::Kind, const std::string& json);

}  // namespace carve::cli
