// The routes of queues and jobs, and what queues forbid to jobs.
#pragma once

#include <optional>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/objects/submission.h"
#include "fronts/render/manifests.h"

namespace carve::controller {

http::Response delete_queue(const Call&);
http::Response cancel_job(const Call&);
http::Response read_job_parameters(const Call&);

// Returns the job that the submission would make, or what forbids it.
Outcome<Object> planned_job(const Call&, const Submission&);

// Returns the answer that refuses the submissions: another `gpu` of a queue, a job that its queue does not
// admit, another spec of a job. No value: nothing forbids them.
std::optional<http::Response> refused_by_queues(const Call&, const std::vector<Submission>&);

// Returns what the caller of a planned job should know.
std::vector<std::string> job_warnings(const Object&);
// Gives the object what a planned one says of its slices and warnings.
void set_planned_status(Object& present, const Object& planned);

// Returns the submission's job as manifests of Kubernetes, or what forbids it.
Result<fronts::Manifests, http::Response> rendered_job(const Call&, const Submission&);

// Returns the job or cluster as it is shown: with its position while it waits, and its GPU-hours.
Object with_present_status(const Call&, const Object&);

}  // namespace carve::controller
