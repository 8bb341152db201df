// What a Job or a RayCluster object means: its pods and what its queue is asked for. To a queue a cluster is
// a job that stays. Pure.
#pragma once

#include "controller/objects/object_record.h"
#include "controller/objects/service_form.h"
#include "fronts/engines/engine_pods.h"
#include "wire/api/field_error.h"
#include "wire/objects/job_object.h"
#include "wire/objects/queue_object.h"
#include "wire/objects/ray_cluster_object.h"

namespace carve::controller {

// Of the pool's devices; 0: not known.
struct DeviceSizes {
  uint64_t context_bytes = 0;  // That a slice pays for each process.
  uint64_t largest_bytes = 0;  // Usable.
};

inline ObjectKey queue_key(std::string name) { return {objects::Kind::queue, "default", std::move(name)}; }

// Where a waiting job is in its queue, and why it waits, as of the last decision.
struct JobPosition {
  uint32_t position = 0;  // From 1; 0: the queue never admits it.
  std::string reason;
};

// Returns the spec of a stored queue or job; of a cluster, the job of Ray that has its head and workers.
objects::QueueSpec queue_spec(const Object&);
objects::JobSpec job_spec(const Object&);

// The kinds whose objects wait in queues.
inline constexpr objects::Kind queued_kinds[] = {objects::Kind::job, objects::Kind::ray_cluster};
inline bool is_queued(objects::Kind kind) {
  return kind == objects::Kind::job || kind == objects::Kind::ray_cluster;
}

// Returns the pods of a job or cluster that is submitted, or every reason why its queue refuses it.
Result<fronts::EnginePods, api::FieldErrors> pods_of_submitted(const Object&, const std::string& queue,
                                                               const objects::QueueSpec&, const DeviceSizes&);

struct JobForm {
  objects::JobSpec spec;
  std::string pool;  // Of its queue; empty: any node.
  fronts::EnginePods pods;
  workload::Job job;  // Without `cancelled`.
};

// Returns the form of a stored job, which was checked when it was submitted, or why it has none any more.
Result<JobForm, std::string> job_form(const Object& job, const Object& queue, const DeviceSizes&);

// Returns the pods of a cluster with so many workers in each group: a worker keeps its index if a group gets
// more or fewer.
std::vector<workload::PodSpec> cluster_pods(const workload::JobNeed&, const std::vector<uint32_t>& workers);

// Returns the name of a pod's program and slice: JOB-ROLE-INDEX.
std::string pod_name(const std::string& job, workload::PodId);

// Returns what each slice of equal ones asks of a node, without its name and owner.
api::SliceRequest slice_terms(const workload::JobNeed&);

// Returns what each slice gets: "1000 MiB, 30%", "2 of 4 GiB, 30%; 1 of 8 GiB, 50%"; empty: the job has
// none.
std::string slice_text(const workload::JobNeed&);

}  // namespace carve::controller
