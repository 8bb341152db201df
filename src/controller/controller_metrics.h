// The controller's metrics: services with their load, queues, pools, budgets and GPU-hours. The families are
// rows of wire/api/metric_families.h. A pure function.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/billing/gpu_hours.h"
#include "controller/jobs/queue_waits.h"
#include "controller/objects/object_registry.h"
#include "controller/restart_totals.h"
#include "controller/runtime/endpoints.h"
#include "wire/api/exposition.h"

namespace carve::controller {

struct ControllerFigures {
  std::string version;
  std::vector<RequestFigures> endpoints;
  std::vector<ObjectRegistry::Pointer> workloads, queues, pools, budgets;
  std::map<std::string, QueueWaits::Queue> waits;  // By queue.
  std::vector<GpuHours::Sum> gpu_hours;
  size_t waiting_jobs = 0;      // Over all queues.
  int64_t decision_ns = 0;      // Duration of the last decision over all queues.
  int64_t longest_turn_ns = 0;  // The longest turn of the API's loop.
  int64_t now_ns = 0;           // UTC.
};

std::string metrics_text(const ControllerFigures&, const RestartTotals&, api::MetricsFormat);

}  // namespace carve::controller
