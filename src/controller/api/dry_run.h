// The part of a dry run's response that shows where the replicas that the documents add would be placed.
#pragma once

#include <vector>

#include "controller/api/api_call.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/submission.h"

namespace carve::controller {

// Returns where each new slice of the planned workload would be granted, and counts it in the forecast. If
// the planned workload has another revision than the present one, these are the slices that the rollout
// requests in addition to the running ones; otherwise they are the slices of missing replicas. Empty if no
// slice is new.
std::vector<api::ReplicaPlacement> forecast_replicas(SliceForecast&, const Object& planned,
                                                     const ObjectRegistry::Pointer& present);

// Returns which rule translated which field of a workload's document.
std::vector<api::TranslatedField> translation_of(const Submission&);

}  // namespace carve::controller
