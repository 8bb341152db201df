// The Job (batch/v1) of a custom job: the one that `carve render` prints (render/job_manifests.h), with its queue
// for Kueue, an owner, and a mark of the programs for which it was made. Pure.
//
// It is created suspended. Kueue then owns the field: it lets the Job run when the queue admits it. Kubernetes
// rejects changes of a Job's pods, so a Job is created once and never applied again. A finished Job remains until
// the custom resource is deleted, because a missing one would be created again.
#pragma once

#include "controller/kubernetes/workload_objects.h"
#include "controller/objects/job_form.h"

namespace carve::controller {

// Returns whether a cluster runs the programs of this job. Otherwise it is only kept.
bool is_run_by_cluster(const objects::JobSpec&);

// Returns the Job, or every reason why the cluster or the queue rejects it. is_run_by_cluster() must be true.
Result<OwnedObjects, api::FieldErrors> job_objects(const Object& job, const Object& queue);

// Returns the mark of the job's immutable fields.
std::string programs_mark(const objects::JobSpec&);

}  // namespace carve::controller
