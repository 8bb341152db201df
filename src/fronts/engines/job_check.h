// A document of kind Job, read and checked as far as it can be without its queue.
#pragma once

#include <string_view>

#include "fronts/engines/engine_pods.h"
#include "wire/objects/job_object.h"

namespace carve::fronts {

// Reads the JSON text strictly and returns the job, or every error. A job may have no name: the controller
// gives it one.
Result<objects::Job, api::FieldErrors> read_job(std::string_view json);

// Returns what is wrong with the programs of a job or a cluster: all but what only one of them has.
api::FieldErrors check_programs(const objects::Metadata&, const objects::JobSpec&);

// Returns what engine_pods() reads. The spec was checked.
EngineRequest engine_request(const objects::JobSpec&, QueueTerms queue);

}  // namespace carve::fronts
