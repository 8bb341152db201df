// Does the guest library know all of the installed driver? NVIDIA adds entry points with most releases;
// one that allocates or launches and that we do not know passes the quota unseen. This compares the names
// that the driver exports with the coverage data that comes with the library (lib/carve/coverage.txt).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/documents.h"

namespace carve::cli {

// One row of coverage.txt: a name or a pattern with '*', and what becomes of it.
struct CoverageRow {
  std::string pattern;
  std::string status;  // "hooked", "exempt", "open"
  std::string reason;
};
std::vector<CoverageRow> parse_coverage(std::string_view text);

// '*' stands for any run of characters.
bool matches(std::string_view pattern, std::string_view name);

// The names of `exports` that look like allocations or launches and that no row, or an open one, covers.
std::vector<std::string> uncovered(const std::vector<std::string>& exports,
                                   const std::vector<CoverageRow>& rows);

// The dynamic symbols that an ELF64 shared object defines; empty where the file is none, however broken.
std::vector<std::string> exported_names(std::string_view elf);

api::Check coverage_check(bool simulated);

}  // namespace carve::cli
