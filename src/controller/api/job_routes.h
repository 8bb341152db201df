// The routes of queues and jobs, and the rules of queues for their jobs.
#pragma once

#include <optional>
#include <vector>

#include "controller/api/api_call.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/submission.h"
#include "render/manifests.h"

namespace carve::controller {

http::Response cancel_job(const Call&);
http::Response read_job_parameters(const Call&);

// Returns the queue that the submission would create, or why it is rejected.
Outcome<Object> planned_queue(const Call&, const Submission&);
// Succeeds if the queue has no unfinished jobs.
Outcome<void> check_queue_deletion(const Call&, const std::string& name);
// Returns the job that the submission would create, or why it is rejected.
Outcome<Object> planned_job(const Call&, const Submission&);

// Returns the response that rejects the submissions if one would change the `gpu` of a queue or the spec of a
// job, or if one is a job that its queue does not admit. No value if they are valid.
std::optional<http::Response> refused_by_queues(const Call&, const std::vector<Submission>&);

// Returns the warnings for the caller about a planned job.
std::vector<std::string> job_warnings(const Object&);
// Copies the slices and warnings from the status of the planned object to that of the current one.
void set_planned_status(Object& present, const Object& planned);

// Returns where each slice of a new job or cluster would be granted if it were admitted now, and counts them in
// the forecast. The last row is that of the first slice that does not fit, with the reason.
std::vector<api::ReplicaPlacement> forecast_slices(const Call&, SliceForecast&, const Submission&);

// Returns the submission's job as Kubernetes manifests, or why it is rejected.
Result<render::Manifests, http::Response> rendered_job(const Call&, const Submission&);

// Returns the job or cluster as the API shows it: with its queue position while it waits, and with its
// GPU-hours.
Object with_present_status(const Views&, const Object&);

}  // namespace carve::controller
