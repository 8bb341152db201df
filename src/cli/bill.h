// Tariffs, budgets and invoices on the command line.
#pragma once

#include <string>

#include "cli/object_columns.h"
#include "cli/services.h"
#include "cli/verbs.h"

namespace carve::cli {

constexpr bool is_price(objects::Kind kind) {
  return kind == objects::Kind::tariff || kind == objects::Kind::budget;
}

void describe_price(Context&, const ObjectName&);

// Return the columns of the kind, and the cells of a tariff or a budget from its JSON.
ObjectCells price_heading(objects::Kind);
Result<ObjectCells, std::string> price_cells(objects::Kind, const std::string& json);

}  // namespace carve::cli
