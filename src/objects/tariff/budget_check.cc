#include "objects/tariff/budget_check.h"

#include <algorithm>

#include "objects/error_list.h"
#include "objects/rules/service_terms.h"

namespace carve::objects {
namespace {

void check_limit(const objects::BudgetSpec& spec, ErrorList& errors) {
  if (spec.gpu_hours.empty() == spec.amount.empty())
    return errors.add("spec", "", "set either gpuHours or amount");
  const bool is_amount = spec.gpu_hours.empty();
  const char* field = is_amount ? "spec.amount" : "spec.gpuHours";
  const std::string& text = is_amount ? spec.amount : spec.gpu_hours;
  const auto limit = bill::parse_millionths(field, text, max_budget);
  if (!limit) return errors.add_message(field, text, limit.error().message);
  if (limit->count == 0) errors.add(field, text, "must be above 0");
}

}  // namespace

Result<objects::Budget, api::FieldErrors> read_budget(std::string_view json) {
  auto [budget, wrong] = api::read_partly<objects::Budget>(json, api::Reading::strict);
  ErrorList errors;
  errors.add_all(check_metadata(budget.metadata));
  const objects::BudgetSpec& spec = budget.spec;
  if (budget.metadata.namespace_ != "default")
    errors.add("metadata.namespace", budget.metadata.namespace_, "budgets have no namespace; leave it out");
  if (spec.account.empty()) errors.add("spec.account", "", "is required: the account whose slices count");
  if (spec.window != "month")
    errors.add("spec.window", spec.window, "{} is not supported; use month", typed(spec.window));
  check_limit(spec, errors);
  if (spec.at.size() > max_budget_levels)
    errors.add("spec.at", "", "{} levels are too many; use at most {}", spec.at.size(), max_budget_levels);
  for (const uint32_t percent : spec.at)
    if (percent == 0 || percent > max_budget_percent)
      errors.add("spec.at", fmt::format("{}", percent), "{} is not a whole percentage from 1 to {}", percent,
                 max_budget_percent);
  if (spec.then != "warn" && spec.then != "hold" && spec.then != "refuse")
    errors.add("spec.then", spec.then, "{} must be warn, hold or refuse", typed(spec.then));
  if (api::FieldErrors all = api::joined(std::move(wrong), errors.all()); !all.empty())
    return tl::unexpected(std::move(all));
  return std::move(budget);
}

bill::Millionths limit_of(const objects::BudgetSpec& spec) {
  const auto limit =
      bill::parse_millionths("spec", spec.gpu_hours.empty() ? spec.amount : spec.gpu_hours, max_budget);
  return limit ? *limit : bill::Millionths{};
}

}  // namespace carve::objects
