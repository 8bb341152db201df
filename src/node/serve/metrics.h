// The agent's state as metrics for Prometheus: the numbers of `carve devices` and `carve top`. The document
// has a few kilobytes and is built at each request; no counter exists for it alone.
#pragma once

#include "node/serve/exposition.h"
#include "node/serve/views.h"

namespace carve::node {

std::string metrics_text(const ViewContext&);

}  // namespace carve::node
