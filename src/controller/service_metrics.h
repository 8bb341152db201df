// What the endpoints of services carry, as metrics for Prometheus. Pure.
#pragma once

#include <string>
#include <vector>

#include "controller/runtime/endpoints.h"

namespace carve::controller {

// Returns the text exposition. An endpoint has the labels `namespace` and `service`.
std::string service_metrics(const std::vector<RequestFigures>&);

}  // namespace carve::controller
