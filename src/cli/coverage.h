// Checks whether the guest library covers the installed driver. NVIDIA adds entry points with most releases.
// An entry point that allocates or launches and is not in the coverage data bypasses the quota. This check
// compares the names that the driver exports with lib/carve/coverage.txt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/doctor.h"

namespace carve::cli {

// One row of coverage.txt: a name or a pattern with '*', and how the guest library treats it.
struct CoverageRow {
  std::string pattern;
  std::string status;  // "hooked", "exempt", "open"
  std::string reason;
};
std::vector<CoverageRow> parse_coverage(std::string_view text);

// Returns whether the name matches. '*' matches any run of characters.
bool matches(std::string_view pattern, std::string_view name);

// Returns the names in `exports` that look like allocations or launches and have no row, or an "open" row.
std::vector<std::string> uncovered(const std::vector<std::string>& exports,
                                   const std::vector<CoverageRow>& rows);

// Returns the dynamic symbols that an ELF64 shared object defines; empty for any other file.
std::vector<std::string> exported_names(std::string_view elf);

api::Check coverage_check(bool simulated);

}  // namespace carve::cli
