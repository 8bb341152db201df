// What `carve get`, `describe` and `submit` share of queues, jobs and Ray clusters.
#pragma once

#include <string>

#include "cli/services.h"

namespace carve::cli {

inline bool is_queue_or_job(objects::Kind kind) {
  return kind == objects::Kind::queue || kind == objects::Kind::job || kind == objects::Kind::ray_cluster;
}

// Prints the objects of `carve get queues|jobs [NAME]`. `output`: table, wide, json, yaml, name.
void get_queues_or_jobs(Context& context, const ObjectName& object, const std::string& name_space,
                        const std::string& selector, const std::string& output);
// The row of a queue or a job, for tables of changes. Fails with a sentence if the JSON is no such object.
const std::vector<std::string>& job_heading(objects::Kind kind);
Result<std::vector<std::string>, std::string> job_cells(objects::Kind kind, const std::string& json);
void describe_queue_or_job(Context& context, const ObjectName& object);

// Prints the output of the job's main programs while they run. Sets the exit status to that of the job, or to
// 1 if it has none. After the controller was restarted it goes on.
void wait_for_job(Context& context, const ObjectName& job);

}  // namespace carve::cli
