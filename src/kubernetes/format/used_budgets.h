// Annotation carve.dev/used-budgets of ConfigMap carve-budgets: the accounts that have used up a budget with
// `then: refuse`. The controller writes it, and the coordinator's webhook rejects new pods of these accounts
// until the end of the month, so a controller that has stopped does not block an account for longer. One line
// of JSON:
//
//   {"v":1,"until":"2026-12-01T00:00:00Z","accounts":{"research":"research-2026"}}
#pragma once

#include <map>
#include <string>

#include "kubernetes/format/annotation.h"

namespace carve::kubernetes {

inline constexpr const char* budgets_name = "carve-budgets";  // The ConfigMap.
inline constexpr const char* budgets_annotation = "carve.dev/used-budgets";
inline constexpr uint32_t used_budgets_version = 1;

struct UsedBudgets {
  uint32_t v = used_budgets_version;
  std::string until;                            // RFC 3339: the end of the budgets' month.
  std::map<std::string, std::string> accounts;  // The used-up budget's name, by account.

  friend bool operator==(const UsedBudgets&, const UsedBudgets&) = default;
};

inline Result<UsedBudgets, std::string> read_used_budgets(std::string_view text) {
  return read_annotation<UsedBudgets>(budgets_annotation, text, used_budgets_version);
}

}  // namespace carve::kubernetes
