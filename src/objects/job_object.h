// kind: Job. Programs that end, under Spark, Ray or no engine, each in a slice of its own. Each program of a
// job, with its slice, is a pod.
#pragma once

#include "core/job_words.h"
#include "objects/service_object.h"
#include "wire/api/json.h"

namespace carve::objects {

struct JobSpec {
  std::string queue;                           // Name of its queue.
  std::string compute_group = "default";       // One of the queue's groups.
  Word<JobEngine> engine = JobEngine::custom;  // "spark", "ray", "custom"
  std::map<std::string, std::string>
      parameters;                 // Parameters of the engine, and Carve's own (spark.md, ray.md).
  Run run;                        // The application. A cluster requires an image; one machine rejects it.
  std::string engine_home;        // Spark: its folder; Ray: the folder of the program `ray`.
  std::string python;             // The engine's Python; empty for python3 of PATH.
  uint32_t workers = 1;           // For Ray.
  uint32_t tasks = 1;             // For a custom job.
  int32_t priority = 0;           // In its queue; a higher number is first.
  uint32_t retries = 0;           // Per task, or for the whole job if it has a driver.
  uint32_t deadline_seconds = 0;  // Since its admission; 0 for none.
  uint32_t ttl_seconds_after_finished = 7 * 86'400;  // After this time the job is removed.
  bool cancelled = false;                            // Set by `carve cancel`.
};

// The type of the last event of `GET .../logs?follow=true`, sent when no more lines follow
// (wire/api/FORMAT.md).
inline constexpr std::string_view log_end_event = "end";

struct PodStatus {
  Word<PodRole> role;                // "driver", "executor", "head", "worker", "task"
  uint32_t index = 0;                // Among the pods of its role, from 0.
  std::string slice;                 // Empty if it has none. Its program's name has the same form.
  std::string program;               // Name of its program.
  std::string node;                  // Name of its node.
  std::vector<std::string> devices;  // UUIDs.
  // "Waiting", "Granted", "Running", "Stopping", "Succeeded", "Failed", "Lost", "Ended"
  Word<PodState> state;
  std::string exit;      // "exit status 1", "signal 9", ...; empty if it has not ended.
  uint32_t attempt = 0;  // From 0; rises with each retry.
};

// A parameter that the controller added because the user did not set it.
struct DerivedParameter {
  std::string key;     // Name of the parameter.
  std::string value;   // Its value.
  std::string reason;  // Why it was added.
};

struct JobStatus {
  uint32_t observed_generation = 0;  // The generation of `spec` that this status describes.
  Word<JobPhase> phase;      // "Queued", "Starting", "Running", "Succeeded", "Failed", "Cancelled", "Lost",
                             // "Deleting"
  uint32_t position = 0;     // Position in its queue, from 1; 0 if it does not wait.
  std::string reason;        // Why it waits, or why it ended this way.
  std::string submitted_at;  // When it was created.
  std::string admitted_at;   // When it got its slices.
  std::string finished_at;   // When its last program had ended.
  std::optional<uint32_t> exit_status;  // The first failed main pod's, or 0; absent if the job has not ended.
  std::string gpu;                      // Amounts of each slice: "4096 MiB, 30 %"; empty if none.
  uint32_t slices = 0;                  // Number of slices it needs.
  uint64_t memory_bytes = 0;            // Per slice.
  uint32_t share_bp = 0;                // Per slice, in hundredths of a percent; 0 for best effort.
  std::string gpu_hours;         // The sum of its invoice lines, as of the last copy of the usage records.
  std::string unpriced_seconds;  // Time of its invoice lines without a price.
  std::string dashboard;         // Address of Ray's dashboard and its job API; empty if there is none.
  std::string dashboard_token;   // RAY_AUTH_TOKEN; shown to those who may change the object.
  std::vector<DerivedParameter> derived;  // Parameters that Carve added.
  std::vector<std::string> warnings;      // Warnings for the submitter.
  std::vector<PodStatus> pods;            // One entry per program.
};

struct Job {
  std::string api_version;
  std::string kind;
  Metadata metadata;
  JobSpec spec;
  JobStatus status;
};

}  // namespace carve::objects

CARVE_DECLARE_DOCUMENT(objects::JobSpec)
CARVE_DECLARE_DOCUMENT(objects::JobStatus)
CARVE_DECLARE_DOCUMENT(objects::Job)
