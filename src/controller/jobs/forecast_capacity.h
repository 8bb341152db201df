// The capacity of one pool for its queues: runs the placement engine over the free capacity of the nodes'
// devices.
#pragma once

#include <map>
#include <set>

#include "controller/nodes/slice_forecast.h"
#include "controller/objects/job_form.h"
#include "workload/queue.h"

namespace carve::controller {

class ForecastCapacity final : public workload::Capacity {
 public:
  // `held_back` contains the jobs that a node has just rejected.
  ForecastCapacity(SliceForecast forecast, std::string pool, std::set<uint64_t> held_back)
      : forecast_(std::move(forecast)), pool_(std::move(pool)), held_back_(std::move(held_back)) {}

  // A slice of a job and its request.
  struct HeldPlace {
    Amounts request;
    ForecastPlace place;
  };
  // Records the slices that a job already has, so that the forecast counts them.
  void hold(uint64_t job, std::vector<HeldPlace> places) { held_[job] = std::move(places); }

  bool take(uint64_t job, const workload::JobNeed&) override;
  bool take_same(uint64_t job, const workload::Capacity& other) override;
  void release(uint64_t job) override;
  std::unique_ptr<workload::Capacity> copy() const override;

  // Returns why the job does not fit now: what each device lacks for the first slice that does not fit.
  std::string problem(const workload::JobNeed&) const;

  const SliceForecast& forecast() const { return forecast_; }

 private:
  SliceForecast forecast_;
  std::string pool_;  // Empty for any node.
  std::set<uint64_t> held_back_;
  std::map<uint64_t, std::vector<HeldPlace>> held_;  // Keyed by job.
};

}  // namespace carve::controller
