// Selects objects by their labels, in the syntax of Kubernetes' label selectors:
//
//   app=web,tier!=cache,zone in (a, b),zone notin (c),gpu,!debug
//
// A selected object meets all requirements. `!=` and `notin` also match an object without the label. All
// functions here are pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"

namespace carve::controller {

inline constexpr size_t max_selector_bytes = 4096;
inline constexpr size_t max_selector_label_bytes = 253;  // For a key, and for a value.
inline constexpr size_t max_selector_requirements = 64;

struct LabelRequirement {
  enum class Operator : uint8_t { in, not_in, exists, not_exists };
  std::string key;
  Operator op = Operator::exists;
  std::vector<std::string> values;  // Used by in and not_in.

  friend bool operator==(const LabelRequirement&, const LabelRequirement&) = default;
};

using LabelSelector = std::vector<LabelRequirement>;  // An empty selector matches every object.

Outcome<LabelSelector> parse_label_selector(std::string_view text);

bool selects(const LabelSelector&, const std::map<std::string, std::string>& labels);

}  // namespace carve::controller
