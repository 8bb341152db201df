#include "controller/billing/budget_status.h"

#include <algorithm>

#include "objects/tariff/budget_check.h"

namespace carve::controller {

objects::BudgetStatus budget_status(const objects::BudgetSpec& spec, const api::BillSum& total,
                                    const UtcMonth& month) {
  objects::BudgetStatus out{.from = text_utc(month.from_ns), .to = text_utc(month.to_ns)};
  out.used = spec.gpu_hours.empty() ? total.amount : total.gpu_hours;
  const auto used = bill::parse_millionths("used", out.used, {INT64_MAX});
  const __int128 limit = objects::limit_of(spec).count;
  if (!used || limit <= 0) return out;
  out.percent = static_cast<uint32_t>(std::min<__int128>(__int128{used->count} * 100 / limit, UINT32_MAX));
  for (const uint32_t level : spec.at)
    if (out.percent >= level) out.reached = std::max(out.reached, level);
  out.holds = spec.then != "warn" && out.percent >= 100;
  return out;
}

}  // namespace carve::controller
