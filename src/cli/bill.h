// Tariffs and invoices on the command line.
#pragma once

#include <string>
#include <vector>

#include "cli/services.h"
#include "cli/verbs.h"

namespace carve::cli {

// `carve get|describe tariffs`.
void get_tariffs(Context&, const ObjectName&, const std::string& output);
void describe_tariff(Context&, const ObjectName&);

// The row of a tariff in a watch, from its JSON.
const std::vector<std::string>& tariff_heading();
Result<std::vector<std::string>, std::string> tariff_cells(const std::string& json);

}  // namespace carve::cli
