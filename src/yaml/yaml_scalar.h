// The type of an unquoted YAML scalar, according to the core schema of YAML 1.2.
#pragma once

#include <string>
#include <string_view>

namespace carve::yaml {

enum class ScalarType { text, boolean, integer, decimal };

struct Scalar {
  ScalarType type = ScalarType::text;
  std::string json;     // As JSON; empty for a text.
  std::string message;  // Why the value is rejected; empty if valid.
};

Scalar plain_scalar(std::string_view text);

}  // namespace carve::yaml
