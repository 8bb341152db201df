// Publishes which accounts have used up a budget with `then: refuse`, so that the coordinator's webhook can
// reject their new pods without a call to the controller (kubernetes/format/used_budgets.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kubernetes/api/api_client.h"
#include "kubernetes/format/used_budgets.h"
#include "objects/budget_object.h"

namespace carve::controller {

// Returns what to publish for these budgets in the month that ends at `until`. If an account has several used-up
// budgets, the first name counts. Accounts that do not fit the annotation are left out; `left_out` is their
// number.
struct BudgetState {
  std::string name;
  objects::BudgetSpec spec;
  objects::BudgetStatus status;
};
kubernetes::UsedBudgets used_budgets(const std::vector<BudgetState>&, const std::string& until,
                                     size_t& left_out);

class BudgetPublisher {
 public:
  static constexpr kubernetes::Nanoseconds interval_ns = 5 * kubernetes::second_ns;

  // Calls `wanted` every 5 s and writes its result into the ConfigMap when it has changed.
  BudgetPublisher(kubernetes::ApiClient&, std::string name_space,
                  std::function<kubernetes::UsedBudgets()> wanted);

 private:
  void tick();

  kubernetes::ApiClient& client_;
  const std::string target_;
  const std::function<kubernetes::UsedBudgets()> wanted_;
  std::string written_;  // The annotation; empty before the first write, and after a write that failed.
  std::string problem_;  // Why the last write failed; logged once.
  std::unique_ptr<kubernetes::ApiCall> timer_, call_;
};

}  // namespace carve::controller
