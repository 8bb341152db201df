// The form of a Job or RayCluster object: its pods and its request to the queue. A queue treats a cluster as
// a job that never finishes. All functions are pure.
#pragma once

#include "controller/objects/object_record.h"
#include "controller/objects/service_form.h"
#include "engines/engine_pods.h"
#include "objects/job_object.h"
#include "objects/queue_object.h"
#include "objects/ray_cluster_object.h"
#include "wire/api/field_error.h"

namespace carve::controller {

// Sizes of the pool's devices; 0 if unknown.
struct DeviceSizes {
  uint64_t context_bytes = 0;  // Charged to a slice for each process.
  uint64_t largest_bytes = 0;  // Usable.
};

inline ObjectKey queue_key(std::string name) { return {objects::Kind::queue, "default", std::move(name)}; }

// The position of a waiting job in its queue and why it is waiting, as of the last decision.
struct JobPosition {
  uint32_t position = 0;  // From 1; 0 if the queue never admits it.
  std::string reason;
};

// Returns the spec of a queue or job. For a cluster, this is the Ray job with its head and workers.
inline const objects::QueueSpec& queue_spec(const Object& queue) {
  return queue.spec.as<objects::QueueSpec>();
}
objects::JobSpec job_spec(const Object&);

// The kinds whose objects wait in queues.
inline constexpr objects::Kind queued_kinds[] = {objects::Kind::job, objects::Kind::ray_cluster};
inline bool is_queued(objects::Kind kind) {
  return kind == objects::Kind::job || kind == objects::Kind::ray_cluster;
}

// Returns the pods of a submitted job or cluster, or all reasons why its queue rejects it.
Result<engines::EnginePods, api::FieldErrors> pods_of_submitted(const Object&, const std::string& queue,
                                                                const objects::QueueSpec&,
                                                                const DeviceSizes&);

struct JobForm {
  objects::JobSpec spec;
  std::string pool;  // Pool of its queue; empty for any node.
  engines::EnginePods pods;
  workload::Job job;  // `cancelled` is not set.
};

// Returns the form of a stored job, or why it no longer has one. The job was checked when it was submitted.
Result<JobForm, std::string> job_form(const Object& job, const Object& queue, const DeviceSizes&);

// Returns the pods of a cluster with these numbers of workers in its groups. A worker keeps its index when
// its group grows or shrinks.
std::vector<workload::PodSpec> cluster_pods(const workload::JobNeed&, const std::vector<uint32_t>& workers);

// Returns the name of a pod's program and slice: JOB-ROLE-INDEX.
std::string pod_name(const std::string& job, workload::PodId);

// Returns the amounts of each slice: "1000 MiB, 30%", "2 of 4 GiB, 30%; 1 of 8 GiB, 50%"; empty if the job
// has no slice.
std::string slice_text(const workload::JobNeed&);

}  // namespace carve::controller
