// The statuses of queues and jobs on a cluster, from the objects of Kueue and of Kubernetes. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/kubernetes/workload_status.h"
#include "objects/job_object.h"
#include "objects/queue_object.h"

namespace carve::controller {

// Returns whether the Workload waits for its queue: it has no quota, and it is neither finished nor deactivated.
bool is_waiting(const api::Json& workload);

struct QueueView {
  const Object& object;
  const api::Json* cluster_queue = nullptr;  // Null if there is none.
  uint32_t slices = 0;                       // Of its running jobs.
  ClusterProblem problem = {};
  std::vector<std::string> warnings = {};
};

// Numbers that the ClusterQueue does not have are 0.
objects::QueueStatus queue_status(const QueueView&);
// Returns whether the queue admits jobs, and if not, why. Warnings are part of the message.
objects::Condition queue_condition(const QueueView&);

struct JobView {
  const Object& object;
  const api::Json* job = nullptr;           // The Job (batch/v1); null if there is none.
  const api::Json* workload = nullptr;      // Its Workload; null if there is none.
  std::vector<const api::Json*> pods = {};  // Also those that were replaced.
  uint32_t position = 0;  // In its queue, from 1; 0 if it does not wait, or waits far behind.
  const workload::JobNeed* need = nullptr;  // Null if its queue does not exist.
  ClusterProblem problem = {};
  std::vector<std::string> warnings = {};
};

// Returns whether the status is that of a job that has ended. It never changes again, except that the job may be
// deleted.
bool is_finished(const objects::JobStatus&);

// `now_ns` is UTC. The object's present status is the previous one.
objects::JobStatus batch_job_status(const JobView&, int64_t now_ns);
// Returns whether the job makes progress, and if not, why. `status` is that of the view.
objects::Condition job_condition(const JobView&, const objects::JobStatus& status);

}  // namespace carve::controller
