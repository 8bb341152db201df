// JSON values as YAML: block style, with every text in JSON's double quotes, which mean the same in YAML 1.1
// and 1.2.
#pragma once

#include <string>

#include "wire/api/json_value.h"

namespace carve::yaml {

// Formats the object or list as lines of YAML.
std::string yaml_text(const api::Json&);

}  // namespace carve::yaml
