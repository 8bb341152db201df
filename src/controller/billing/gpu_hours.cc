#include "controller/billing/gpu_hours.h"

#include "os/log.h"

namespace carve::controller {

void GpuHours::count(const std::vector<UsageRow>& rows, const bill::Tariffs& tariffs,
                     const ledger::Stamp& now) {
  for (const UsageRow& row : rows) {
    const bool is_open = row.end_ns == 0;
    if (!is_open && row.end_ns <= started_ns_) continue;
    const auto usage = usage_of(row);
    if (!usage) {
      os::log::debug("GPU-hours: {}", usage.error().message);
      continue;
    }
    const Record record{row.node, row.ledger, row.id};
    const bill::Invoice invoice = bill::invoice({&*usage, 1}, tariffs, {.from = started_ns_}, now);
    const __int128 hours = bill::total(invoice.lines).gpu_hours;
    const auto known = open_.find(record);
    const __int128 counted = known == open_.end() ? 0 : known->second;
    // A new tariff may lower the hours of a record; a counter must not decrease.
    if (hours > counted) add(row.account, row.queue, hours - counted);
    if (is_open)
      open_[record] = std::max(hours, counted);
    else if (known != open_.end())
      open_.erase(known);
  }
}

void GpuHours::add(const std::string& account, const std::string& queue, __int128 hours) {
  const os::MutexLock lock(mutex_);
  const std::pair pair(account, queue);
  if (sums_.contains(pair) || sums_.size() < max_pairs)
    sums_[pair] += hours;
  else
    sums_[{rest, ""}] += hours;
}

std::vector<GpuHours::Sum> GpuHours::sums() const {
  const os::MutexLock lock(mutex_);
  std::vector<Sum> out;
  for (const auto& [pair, hours] : sums_)
    out.push_back({.account = pair.first, .queue = pair.second, .gpu_hours = hours});
  return out;
}

}  // namespace carve::controller
