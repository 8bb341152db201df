// A job consists of programs that end, each of which is a pod. actions() compares the desired job with the
// observed one, from its admission by a queue (queue.h) to the removal of its record.
//
// * All pods get their slices before the first program starts. If one slice is rejected, the others are ended
//   and the job returns to its queue.
// * The main pods decide: the driver, or all tasks. If they have exited with status 0, the job has succeeded.
//   The other pods (executors, head, workers) are then stopped.
// * A main pod that fails is restarted after the back-off of restart.h, at most `retries` times. A task is
//   restarted without the others. With a driver all pods are stopped and restarted, as the next attempt.
// * A driver that has lost its cluster is stopped, which is a failure of the driver: the head has ended, or
//   all executors, or all workers.
// * A job that returns to its queue, because a node with one of its slices is drained, is stopped first. This
//   does not use up a retry, because the caller adds one.
// * A program whose end was not seen, for example over a boot, counts as failed. If no retry is left, the job
//   is lost, because its result is unknown.
// * When the job ends (by a result, the deadline or a cancellation), the end is recorded first and never
//   changes. Then every program gets SIGTERM and after 500 ms SIGKILL, and every slice ends, all within 1 s.
// * A slice ends as soon as its program is over and will not restart, because time until then is billed.
// * A job that stays (a Ray cluster) has a head and workers and no main pods. It ends when it is cancelled.
//   Each end of a program is a failure, and the program is restarted after the back-off, without a limit: a
//   worker without the others, or all pods if the head has ended.
// * If a cluster has fewer workers than before, an observed pod that no longer belongs to the job is stopped,
//   its slice ends, and it is forgotten. The other pods keep running.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "core/failure.h"
#include "core/job_words.h"
#include "workload/restart.h"

namespace carve::workload {

inline constexpr size_t max_job_name_bytes = 48;
inline constexpr size_t max_job_pods = 1024;
inline constexpr unsigned max_job_retries = 100;
inline constexpr Ns job_grace_ns = second_ns / 2;              // From SIGTERM to SIGKILL.
inline constexpr Ns default_job_ttl_ns = 604'800 * second_ns;  // From the job's end to its removal.

struct PodId {
  PodRole role = PodRole::task;
  uint32_t index = 0;

  friend auto operator<=>(const PodId&, const PodId&) = default;
};

struct PodSpec {
  PodId id;
  bool needs_slice = true;  // False for a driver or head without a GPU.
};

struct Job {
  std::string name;
  std::vector<PodSpec> pods;
  unsigned retries = 0;
  Ns deadline = 0;  // Longest time since the admission; 0 means no limit.
  Ns ttl = default_job_ttl_ns;
  bool cancelled = false;
  bool stays = false;  // It has no main pods and does not end by itself.
};

// Returns the job, or the first rule that it violates (invalid_argument).
Outcome<Job> validated(Job);

enum class PodProgram : uint8_t {
  not_started,
  running,
  exited,
  lost,  // The program is gone, and its exit status is unknown.
};

// A pod that has a slice or had a program.
struct Pod {
  PodId id;
  bool has_slice = false;
  PodProgram program = PodProgram::not_started;
  Ns program_since = 0;             // When the program entered this state.
  unsigned attempt = 0;             // Number of the last start; 0 if not started.
  unsigned failures = 0;            // Ends with a non-zero exit status, and lost programs.
  std::optional<Ns> terminated_at;  // When SIGTERM was sent to the running program.
};

enum class JobEnd : uint8_t { all_succeeded, program_failed, program_lost, deadline, cancelled };

struct JobObserved {
  std::optional<Ns> admitted_at;  // No value while the job waits in its queue.
  std::vector<Pod> pods;          // In any order, without duplicate ids.
  // The last create_slice was rejected with insufficient_capacity. The controller clears the rejection when a
  // slice is granted to the job, and when the job returns to its queue.
  struct Refusal {
    Ns at = 0;
    unsigned times = 1;  // Number of consecutive rejections.
  };
  std::optional<Refusal> refusal;
  bool returns = false;  // The job returns to its queue.
  struct Finished {
    JobEnd end;
    Ns at = 0;
  };
  std::optional<Finished> finished;
};

struct JobAction {
  enum class Kind : uint8_t {
    create_slice,
    start,  // Starts the pod's program as `attempt`.
    terminate,
    kill,
    end_slice,
    forget,   // Removes the pod, which no longer belongs to the job and holds nothing.
    requeue,  // Returns the job to its queue. Like the next two kinds, names no pod.
    finish,   // Records `end`.
    remove,   // Removes the job's record.
  };
  Kind kind;
  PodId pod;
  unsigned attempt = 0;
  JobEnd end = JobEnd::all_succeeded;

  friend bool operator==(const JobAction&, const JobAction&) = default;
};

// Returns the controller's next actions. The pods are in the order of the job, followed by pods that no
// longer belong to it. The job must have been validated.
std::vector<JobAction> actions(const Job&, const JobObserved&, Ns now);

// Returns any phase but `deleting`.
JobPhase phase(const Job&, const JobObserved&);

}  // namespace carve::workload
