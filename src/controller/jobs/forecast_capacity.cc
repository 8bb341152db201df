#include "controller/jobs/forecast_capacity.h"

#include "core/invariant.h"

namespace carve::controller {

bool ForecastCapacity::take(uint64_t job, const workload::JobNeed& need) {
  if (held_back_.contains(job)) return false;
  std::vector<HeldPlace> held;
  for (const workload::SliceGroup& group : need.groups)
    for (uint32_t i = 0; i < group.slices; ++i) {
      auto place = forecast_.place({.pool = pool_}, group.amounts);
      if (!place) {
        for (const HeldPlace& taken : held) forecast_.release_at(taken.place, taken.request);
        return false;
      }
      held.push_back({.request = group.amounts, .place = std::move(*place)});
    }
  held_[job] = std::move(held);
  return true;
}

bool ForecastCapacity::take_same(uint64_t job, const workload::Capacity& other) {
  const auto& from = dynamic_cast<const ForecastCapacity&>(other);
  std::vector<HeldPlace> held = from.held_.at(job);
  for (size_t i = 0; i < held.size(); ++i) {
    if (forecast_.take_at(held[i].place, held[i].request)) continue;
    while (i-- > 0) forecast_.release_at(held[i].place, held[i].request);
    return false;
  }
  held_[job] = std::move(held);
  return true;
}

void ForecastCapacity::release(uint64_t job) {
  const auto held = held_.find(job);
  if (held == held_.end()) return;  // A job without slices.
  for (const HeldPlace& one : held->second) forecast_.release_at(one.place, one.request);
  held_.erase(held);
}

std::unique_ptr<workload::Capacity> ForecastCapacity::copy() const {
  return std::make_unique<ForecastCapacity>(*this);
}

std::string ForecastCapacity::problem(const workload::JobNeed& need) const {
  SliceForecast forecast = forecast_;
  const uint64_t count = workload::slice_count(need);
  uint64_t number = 0;
  for (const workload::SliceGroup& group : need.groups)
    for (uint32_t i = 0; i < group.slices; ++i) {
      ++number;
      const auto place = forecast.place({.pool = pool_}, group.amounts);
      if (place) continue;
      if (count == 1) return place.error().message;
      return fmt::format("slice {} of {}: {}", number, count, place.error().message);
    }
  return "";
}

}  // namespace carve::controller
