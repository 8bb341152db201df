// The filter of a path, [?(@.a=="b")], which the parser makes (json_path_parser.cc) and the search applies
// (json_path.cc).
#pragma once

#include "cli/json_path.h"
#include "wire/api/json_value.h"

namespace carve::cli {

// One side of a comparison in a filter.
struct FilterSide {
  bool is_literal = false;
  JsonPath path;
  api::Json literal;
};

enum class Comparison : uint8_t { exists, equal, unequal, less, at_most, greater, at_least };

struct PathFilter {
  FilterSide left, right;
  Comparison comparison = Comparison::exists;
};

}  // namespace carve::cli
