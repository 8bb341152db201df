#include "controller/jobs/forecast_capacity.h"

#include "core/invariant.h"

namespace carve::controller {

void ForecastCapacity::hold(uint64_t job, const workload::JobNeed& need, std::vector<ForecastPlace> places) {
  held_[job] = {.request = slice_terms(need), .places = std::move(places)};
}

bool ForecastCapacity::take(uint64_t job, const workload::JobNeed& need) {
  if (held_back_.contains(job)) return false;
  HeldPlaces held{.request = slice_terms(need), .places = {}};
  for (uint32_t i = 0; i < need.slices; ++i) {
    auto place = forecast_.place({.pool = pool_}, held.request);
    if (!place) {
      for (const ForecastPlace& taken : held.places) forecast_.release_at(taken, held.request);
      return false;
    }
    held.places.push_back(std::move(*place));
  }
  held_[job] = std::move(held);
  return true;
}

bool ForecastCapacity::take_same(uint64_t job, const workload::Capacity& other) {
  const auto& from = dynamic_cast<const ForecastCapacity&>(other);
  HeldPlaces held = from.held_.at(job);
  for (size_t i = 0; i < held.places.size(); ++i) {
    if (forecast_.take_at(held.places[i], held.request)) continue;
    while (i > 0) forecast_.release_at(held.places[--i], held.request);
    return false;
  }
  held_[job] = std::move(held);
  return true;
}

void ForecastCapacity::release(uint64_t job) {
  const auto held = held_.find(job);
  if (held == held_.end()) return;  // A job without slices.
  for (const ForecastPlace& place : held->second.places) forecast_.release_at(place, held->second.request);
  held_.erase(held);
}

std::unique_ptr<workload::Capacity> ForecastCapacity::copy() const {
  return std::make_unique<ForecastCapacity>(*this);
}

std::string ForecastCapacity::problem(const workload::JobNeed& need) const {
  SliceForecast forecast = forecast_;
  const api::SliceRequest request = slice_terms(need);
  for (uint32_t i = 0; i < need.slices; ++i) {
    const auto place = forecast.place({.pool = pool_}, request);
    if (place) continue;
    if (need.slices == 1) return place.error().sentence;
    return fmt::format("slice {} of {}: {}", i + 1, need.slices, place.error().sentence);
  }
  return "";
}

}  // namespace carve::controller
