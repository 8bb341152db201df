// What a dry run answers beside the errors: where the replicas that the documents add would be placed.
#pragma once

#include <vector>

#include "controller/api/api_call.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/submission.h"

namespace carve::controller {

// Returns where each new slice of the planned workload would be granted, and counts it in the forecast. Of a
// present workload that gets another revision these are the slices that the rollout requests beside the
// running ones, of one that keeps its revision the replicas that it does not have yet. Empty: none is new.
std::vector<api::ReplicaPlacement> forecast_replicas(SliceForecast&, const Object& planned,
                                                     const ObjectRegistry::Pointer& present);

// Returns which rule translated which field of the document of a workload.
std::vector<api::TranslatedField> translation_of(const Submission&);

}  // namespace carve::controller
