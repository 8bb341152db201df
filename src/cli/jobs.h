// Helpers shared by `carve get`, `describe` and `submit` for queues, jobs and Ray clusters.
#pragma once

#include <string>

#include "cli/services.h"

namespace carve::cli {

inline bool is_queue_or_job(objects::Kind kind) {
  return kind == objects::Kind::queue || kind == objects::Kind::job || kind == objects::Kind::ray_cluster;
}

// Prints the objects of `carve get queues|jobs [NAME]`. `output` is table, wide, json, yaml or name.
void get_queues_or_jobs(Context& context, const ObjectName& object, const std::string& name_space,
                        const std::string& selector, const std::string& output);
// Returns the row for a queue or a job in tables of changes. Fails with a message if the JSON is not such an
// object.
const std::vector<std::string>& job_heading(objects::Kind kind);
Result<std::vector<std::string>, std::string> job_cells(objects::Kind kind, const std::string& json);
void describe_queue_or_job(Context& context, const ObjectName& object);

// Prints the output of the job's main programs while they run. Sets the exit status to the job's, or to 1 if
// it has none. Continues after a restart of the controller.
void wait_for_job(Context& context, const ObjectName& job);

// Waits until the job or cluster runs or has succeeded, and prints why it is waiting.
void wait_until_job_runs(Context& context, const ObjectName& job, unsigned timeout_seconds);

}  // namespace carve::cli
