// Documents of the API, version 1: the checks of `carve doctor`.
#pragma once

#include <string>
#include <vector>

#include "core/enforcement.h"

namespace carve::api {

// GET /v1/doctor
struct Check {
  std::string name;
  CheckStatus status = CheckStatus::ok;
  std::string detail;  // The finding.
  std::string fix;     // The way to "ok"; empty if there is nothing to fix.
};

struct Diagnosis {
  EnforcementLevel memory = EnforcementLevel::none;   // What limits the memory of this node's slices.
  EnforcementLevel compute = EnforcementLevel::none;  // What limits their compute.
  std::vector<Check> checks;
};

}  // namespace carve::api
