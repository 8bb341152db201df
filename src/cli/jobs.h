// Helpers shared by `carve get`, `describe` and `submit` for queues, jobs and Ray clusters.
#pragma once

#include <string>

#include "cli/object_columns.h"
#include "cli/services.h"

namespace carve::cli {

inline bool is_queue_or_job(objects::Kind kind) {
  return kind == objects::Kind::queue || kind == objects::Kind::job || kind == objects::Kind::ray_cluster;
}

// Return the columns of the kind, and the cells of a queue, a job or a Ray cluster from its JSON.
ObjectCells job_heading(objects::Kind kind);
Result<ObjectCells, std::string> job_cells(objects::Kind kind, const std::string& json);
void describe_queue_or_job(Context& context, const ObjectName& object);

// Prints the output of the job's main programs while they run. Sets the exit status to the job's, or to 1 if
// it has none. Continues after a restart of the controller.
void wait_for_job(Context& context, const ObjectName& job);

// Waits until the job or cluster runs or has succeeded, and prints why it is waiting.
void wait_until_job_runs(Context& context, const ObjectName& job, unsigned timeout_seconds);

}  // namespace carve::cli
