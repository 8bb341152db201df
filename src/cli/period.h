// The period of a report: --month, --from and --to, as `carve bill` and `carve usage` take them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "core/failure.h"

namespace carve::cli {

struct Period {
  std::string month, from, to;
};

// Adds the options, whose values are stored in `period`, which must outlive the verb.
void add_period(CLI::App* verb, Period& period);

// The period in the API's form: two times, of which the second is exclusive. Empty for the default.
struct Window {
  std::string from, to;
};
Outcome<Window> window_of(const Period&);

// Returns "2026-11-01 to 2026-11-30" for whole days; otherwise the moments.
std::string shown_period(const std::string& from, const std::string& to);

}  // namespace carve::cli
