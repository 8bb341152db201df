// Parses and checks a document of kind Job, as far as possible without its queue.
#pragma once

#include <string_view>

#include "engines/engine_pods.h"
#include "objects/job_object.h"

namespace carve::objects {

// Parses the JSON text strictly and returns the job. Fails with every error. A job may have no name; the
// controller then assigns one.
Result<objects::Job, api::FieldErrors> read_job(std::string_view json);

// Returns the errors in the programs of a job or cluster, except those of fields that only one of them has.
api::FieldErrors check_programs(const objects::Metadata&, const objects::JobSpec&);

// Returns the input of engine_pods(). The spec must be valid.
engines::EngineRequest engine_request(const objects::JobSpec&, engines::QueueTerms queue);

}  // namespace carve::objects
