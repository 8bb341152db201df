// What a YAML scalar without quotes is, by the core schema of YAML 1.2.
#pragma once

#include <string>
#include <string_view>

namespace carve::fronts {

enum class ScalarType { text, boolean, integer, decimal };

struct Scalar {
  ScalarType type = ScalarType::text;
  std::string json;      // As JSON; empty for a text.
  std::string sentence;  // Why the value is refused; empty: it is not.
};

Scalar plain_scalar(std::string_view text);

}  // namespace carve::fronts
