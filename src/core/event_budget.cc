#include "core/event_budget.h"

namespace carve {

bool EventBudgets::take(const Cause& cause, int64_t now_ns) {
  const bool is_another = budgets_.size() >= max_causes && !budgets_.contains(cause.who);
  Budget& own = budgets_[is_another && !cause.has_reserve ? others : cause.who];
  if (own.budget.take(now_ns) && (cause.has_reserve || shared_.take(now_ns))) return true;
  ++own.left_out;
  return false;
}

std::vector<EventBudgets::LeftOut> EventBudgets::take_left_out(int64_t now_ns) {
  std::vector<LeftOut> out;
  for (auto& [who, own] : budgets_) {
    if (own.left_out != 0) out.push_back({who, own.left_out});
    own.left_out = 0;
  }
  std::erase_if(budgets_, [now_ns](const auto& entry) { return entry.second.budget.is_full(now_ns); });
  return out;
}

}  // namespace carve
