// JSON values as YAML: blocks, with every text in the double quotes of JSON, which YAML 1.1 and 1.2 read
// alike.
#pragma once

#include <string>

#include "wire/api/json_value.h"

namespace carve::fronts {

// Returns the object or list as lines of YAML.
std::string yaml_text(const api::Json&);

}  // namespace carve::fronts
