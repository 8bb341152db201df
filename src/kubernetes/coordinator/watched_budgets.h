// The accounts whose budgets are used up, as the controller publishes them in ConfigMap carve-budgets
// (kubernetes/format/used_budgets.h). A webhook's answer never waits for them: while they are unknown, or if the
// annotation cannot be read, no pod is rejected because of a budget.
#pragma once

#include "kubernetes/api/watched_objects.h"
#include "kubernetes/format/used_budgets.h"

namespace carve::kubernetes::coordinator {

class WatchedBudgets {
 public:
  WatchedBudgets(kubernetes::ApiClient&, const std::string& name_space, uint64_t seed);

  const kubernetes::UsedBudgets& now() const { return used_; }

 private:
  void read(const kubernetes::ObjectMeta&);

  kubernetes::UsedBudgets used_;
  kubernetes::ObjectWatch watch_;  // Declared last, because it calls the others.
};

}  // namespace carve::kubernetes::coordinator
