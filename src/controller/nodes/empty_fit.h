// Whether all slices of a job fit together on empty nodes. A job that does not fit would wait forever, so it
// is rejected when it is submitted. If it was accepted before the devices were known, other jobs pass it.
#pragma once

#include <string>

#include "controller/nodes/slice_forecast.h"
#include "workload/queue.h"

namespace carve::controller {

// Returns nothing if the job fits or the pool's devices are unknown, otherwise why it does not fit
// (failed_precondition). `empty` has the nodes without their slices.
Outcome<void> check_fits_empty(SliceForecast empty, const std::string& pool, const workload::JobNeed&);

}  // namespace carve::controller
