// The agent's state as metrics, for Prometheus: what `carve devices` and `carve top` show, as numbers.
// One document of a few kilobytes, built when it is asked for; nothing is counted for its sake.
#pragma once

#include "node/serve/exposition.h"
#include "node/serve/views.h"

namespace carve::node {

std::string metrics_text(const ViewContext&);

}  // namespace carve::node
