// Metrics of the controller: the load of the services' endpoints and the number of waiting jobs. Pure functions.
#pragma once

#include <vector>

#include "controller/runtime/endpoints.h"
#include "wire/api/exposition.h"

namespace carve::controller {

void write_service_metrics(api::Exposition&, const std::vector<RequestFigures>&);
// `decision_ns` is the duration of the last decision over all queues.
void write_queue_metrics(api::Exposition&, size_t waiting_jobs, int64_t decision_ns);
void write_loop_metrics(api::Exposition&, int64_t longest_turn_ns);

}  // namespace carve::controller
