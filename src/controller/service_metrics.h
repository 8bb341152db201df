// Metrics for Prometheus: the load of the services' endpoints and the number of waiting jobs. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "controller/runtime/endpoints.h"

namespace carve::controller {

// Returns the metrics in the text format. An endpoint has the labels `namespace` and `service`.
std::string service_metrics(const std::vector<RequestFigures>&);
// `decision_ns` is the duration of the last decision over all queues.
std::string queue_metrics(size_t waiting_jobs, int64_t decision_ns);
std::string loop_metrics(int64_t longest_turn_ns);

}  // namespace carve::controller
