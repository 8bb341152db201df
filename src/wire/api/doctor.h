// Documents of the API, version 1: the checks of `carve doctor`.
#pragma once

#include <string>
#include <vector>

#include "core/enforcement.h"
#include "wire/api/json.h"

namespace carve::api {

// GET /v1/doctor
struct Check {
  std::string name;
  CheckStatus status = CheckStatus::ok;
  std::string detail;  // The finding.
  std::string fix;     // How to fix it. Empty if there is nothing to fix.
};

struct Diagnosis {
  EnforcementLevel memory = EnforcementLevel::none;   // Enforcement of memory limits on this node.
  EnforcementLevel compute = EnforcementLevel::none;  // Enforcement of compute shares.
  std::vector<Check> checks;
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::Check)
CARVE_DECLARE_DOCUMENT(api::Diagnosis)
