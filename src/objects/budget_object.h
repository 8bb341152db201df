// kind: Budget. The amount that an account may use in a month, compared with its invoice so far. A budget
// with `then: hold` keeps new jobs of the account in their queue, and one with `then: refuse` also rejects its
// new pods in a Kubernetes cluster; nothing that runs is ended.
#pragma once

#include "objects/object.h"
#include "wire/api/json.h"

namespace carve::objects {

struct BudgetSpec {
  std::string account;                   // The paying account.
  std::string window = "month";          // In UTC.
  std::string gpu_hours;                 // Either this or an amount.
  std::string amount;                    // In the currency of the tariffs.
  std::vector<uint32_t> at = {80, 100};  // Percentages that cause an event.
  // "hold": beyond 100 percent jobs wait. "refuse": also, pods with slices are rejected.
  std::string then = "warn";
};

struct BudgetStatus {
  std::string from;      // The month.
  std::string to;        // The end of the month.
  std::string used;      // In the spec's terms: GPU-hours, or an amount.
  uint32_t percent = 0;  // Part of the spec's amount that is used.
  uint32_t reached = 0;  // The largest of spec.at that was reached; 0 if none.
  bool holds = false;    // Jobs of the account wait.
};

struct Budget {
  std::string api_version;
  std::string kind;
  Metadata metadata;
  BudgetSpec spec;
  BudgetStatus status;
};

}  // namespace carve::objects

CARVE_DECLARE_DOCUMENT(objects::BudgetSpec)
CARVE_DECLARE_DOCUMENT(objects::BudgetStatus)
CARVE_DECLARE_DOCUMENT(objects::Budget)
