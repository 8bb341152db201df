#include "workload/job.h"

#include <algorithm>
#include <set>

namespace carve::workload {
namespace {

using JobKind = JobAction::Kind;

bool is_main(PodRole role) { return role == PodRole::driver || role == PodRole::task; }

// Returns whether all pods are restarted with this pod.
bool is_leader(const Job& job, PodRole role) { return role == (job.stays ? PodRole::head : PodRole::driver); }

// Returns whether a pod is restarted without the others.
bool is_started_alone(const Job& job, PodRole role) {
  return role == PodRole::task || (job.stays && role != PodRole::head);
}

// A pod with its observed state and its desired state.
struct PodView {
  PodSpec spec;
  Pod pod;
  unsigned wanted = 1;      // The desired attempt: 1 + failures of the task, or of the driver.
  bool is_retired = false;  // It no longer belongs to the job.

  bool is_running() const { return pod.program == PodProgram::running; }
  bool is_due() const { return pod.attempt < wanted; }  // The desired attempt has not been started.
  bool is_stale() const { return is_running() && is_due(); }
  bool lacks_slice() const { return is_due() && spec.needs_slice && !pod.has_slice; }
  bool is_over() const { return !is_running() && !is_due(); }
};

std::vector<PodView> views(const Job& job, const JobObserved& observed) {
  std::vector<PodView> list;
  unsigned leader_failures = 0;
  for (const PodSpec& spec : job.pods) {
    const auto found = std::ranges::find(observed.pods, spec.id, &Pod::id);
    list.push_back({.spec = spec, .pod = found != observed.pods.end() ? *found : Pod{.id = spec.id}});
    if (is_leader(job, spec.id.role)) leader_failures = list.back().pod.failures;
  }
  for (PodView& view : list)
    view.wanted = 1 + leader_failures + (is_started_alone(job, view.spec.id.role) ? view.pod.failures : 0);
  for (const Pod& pod : observed.pods)
    if (std::ranges::find(job.pods, pod.id, &PodSpec::id) == job.pods.end())
      list.push_back({.spec = {.id = pod.id}, .pod = pod, .wanted = pod.attempt, .is_retired = true});
  return list;
}

class JobPass {
 public:
  JobPass(const Job& job, const JobObserved& observed, Ns now)
      : job_(job), observed_(observed), now_(now), pods_(views(job, observed)) {}

  std::vector<JobAction> run() {
    if (observed_.finished) {
      clean_up();
    } else if (observed_.returns && observed_.admitted_at && !job_.cancelled) {
      stop_and_give_back();
    } else if (const auto end = reached_end()) {
      actions_.push_back({.kind = JobKind::finish, .pod = {}, .attempt = 0, .end = *end});
    } else if (observed_.admitted_at) {
      const bool started = std::ranges::any_of(pods_, [](const PodView& v) { return v.pod.attempt > 0; });
      observed_.refusal && !started ? give_slices_back() : proceed();
    }
    return std::move(actions_);
  }

 private:
  void add(JobKind kind, const PodView& view, unsigned attempt = 0) {
    actions_.push_back({.kind = kind, .pod = view.spec.id, .attempt = attempt});
  }

  std::optional<JobEnd> reached_end() const {
    if (job_.cancelled) return JobEnd::cancelled;
    if (!observed_.admitted_at || job_.stays) return std::nullopt;
    bool all_succeeded = true;
    for (const PodView& view : pods_) {
      if (!is_main(view.spec.id.role)) continue;
      // The result of a program that the controller stopped is known to be a failure.
      const bool is_unknown = view.pod.program == PodProgram::lost && !view.pod.terminated_at;
      if (view.pod.failures > job_.retries) return is_unknown ? JobEnd::program_lost : JobEnd::program_failed;
      all_succeeded &= view.is_over();
    }
    if (all_succeeded) return JobEnd::all_succeeded;
    if (job_.deadline != 0 && after(*observed_.admitted_at, job_.deadline) <= now_) return JobEnd::deadline;
    return std::nullopt;
  }

  void stop(const PodView& view) {
    if (!view.pod.terminated_at)
      add(JobKind::terminate, view);
    else if (after(*view.pod.terminated_at, job_grace_ns) <= now_)
      add(JobKind::kill, view);
  }

  void clean_up() {
    bool released = true;
    for (const PodView& view : pods_) {
      if (view.is_running())
        stop(view);
      else if (view.pod.has_slice)
        add(JobKind::end_slice, view);
      released &= !view.is_running() && !view.pod.has_slice;
    }
    if (released && after(observed_.finished->at, job_.ttl) <= now_)
      actions_.push_back({.kind = JobKind::remove, .pod = {}});
  }

  void stop_and_give_back() {
    for (const PodView& view : pods_)
      if (view.is_running()) stop(view);
    const bool is_running = std::ranges::any_of(pods_, [](const PodView& view) { return view.is_running(); });
    if (!is_running) give_slices_back();
  }

  void give_slices_back() {
    for (const PodView& view : pods_)
      if (view.pod.has_slice) add(JobKind::end_slice, view);
    if (actions_.empty()) actions_.push_back({.kind = JobKind::requeue, .pod = {}});
  }

  // Returns whether the pod waits for other pods. At the first start, and always if there is a driver, all
  // pods that are due need their slices first, and all programs of the earlier attempt must have ended.
  bool waits(const PodView& view) const {
    if (is_started_alone(job_, view.spec.id.role) && view.pod.attempt > 0)
      return view.lacks_slice() || (job_.stays && std::ranges::any_of(pods_, [&](const PodView& v) {
                                      return is_leader(job_, v.spec.id.role) && v.is_due();
                                    }));
    return std::ranges::any_of(pods_, [](const PodView& v) { return v.lacks_slice() || v.is_stale(); });
  }

  // Returns the time before which the pod is not restarted.
  Ns backed_off_until(const PodView& view) const {
    const PodView* failed_pod = &view;
    if (!is_started_alone(job_, view.spec.id.role))
      for (const PodView& v : pods_)
        if (is_leader(job_, v.spec.id.role)) failed_pod = &v;
    // A driver that runs as the desired attempt was started after the back-off.
    if (failed_pod->pod.attempt == 0 || !failed_pod->is_due()) return now_;
    return after(failed_pod->pod.program_since, backoff_ns(failed_pod->pod.failures));
  }

  // Returns whether the running driver has lost its cluster.
  bool is_cluster_lost() const {
    const auto is_lost = [](const PodView& v) { return v.pod.attempt > 0 && v.is_over(); };
    bool has_helpers = false, has_living_helper = false;
    for (const PodView& view : pods_) {
      if (is_main(view.spec.id.role)) continue;
      if (view.spec.id.role == PodRole::head) {
        if (is_lost(view)) return true;
        continue;
      }
      has_helpers = true;
      has_living_helper |= !is_lost(view);
    }
    return has_helpers && !has_living_helper;
  }

  void retire(const PodView& view) {
    if (view.is_running())
      stop(view);
    else
      add(view.pod.has_slice ? JobKind::end_slice : JobKind::forget, view);
  }

  void proceed() {
    const bool cluster_lost = is_cluster_lost();
    const auto& refusal = observed_.refusal;
    const bool may_create = !refusal || after(refusal->at, backoff_ns(refusal->times)) <= now_;
    for (const PodView& view : pods_) {
      if (view.is_retired) {
        retire(view);
      } else if (view.is_stale() || (cluster_lost && is_main(view.spec.id.role) && view.is_running())) {
        stop(view);
      } else if (view.is_over()) {
        if (view.pod.has_slice) add(JobKind::end_slice, view);
      } else if (view.lacks_slice()) {
        if (may_create) add(JobKind::create_slice, view);
      } else if (!view.is_running() && !waits(view) && backed_off_until(view) <= now_) {
        add(JobKind::start, view, view.wanted);
      }
    }
  }

  const Job& job_;
  const JobObserved& observed_;
  const Ns now_;
  const std::vector<PodView> pods_;
  std::vector<JobAction> actions_;
};

}  // namespace

Outcome<Job> validated(Job job) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (job.name.empty() || job.name.size() > max_job_name_bytes || !letter(job.name.front()) ||
      !letter(job.name.back()) ||
      !std::ranges::all_of(job.name, [&](char c) { return letter(c) || c == '-'; }))
    return failure(FailureKind::invalid_argument,
                   "'{}' is not a job name; use 1 to {} characters from a-z, 0-9 and -, with a letter or "
                   "digit first and last",
                   job.name.substr(0, 80), max_job_name_bytes);
  if (job.pods.size() > max_job_pods)
    return failure(FailureKind::invalid_argument, "{} pods are requested; a job can have at most {}",
                   job.pods.size(), max_job_pods);
  std::set<PodId> ids;
  size_t drivers = 0, tasks = 0;
  for (const PodSpec& spec : job.pods) {
    if (!ids.insert(spec.id).second)
      return failure(FailureKind::invalid_argument, "two pods have the same role and index {}",
                     spec.id.index);
    drivers += spec.id.role == PodRole::driver;
    tasks += spec.id.role == PodRole::task;
  }
  if (job.stays ? drivers + tasks != 0 : drivers > 1 || (drivers == 0) == (tasks == 0))
    return failure(
        FailureKind::invalid_argument, "{} drivers and {} tasks: {}", drivers, tasks,
        job.stays ? "a long-running job may have neither" : "a job must have either one driver or tasks");
  if (job.retries > max_job_retries)
    return failure(FailureKind::invalid_argument, "retries {}: must be 0 to {}", job.retries,
                   max_job_retries);
  if (job.deadline < 0 || job.ttl < 0)
    return failure(FailureKind::invalid_argument,
                   "deadlineSeconds and ttlSecondsAfterFinished must be 0 or more");
  return job;
}

std::vector<JobAction> actions(const Job& job, const JobObserved& observed, Ns now) {
  return JobPass(job, observed, now).run();
}

JobPhase phase(const Job& job, const JobObserved& observed) {
  if (observed.finished) {
    switch (observed.finished->end) {
      case JobEnd::all_succeeded: return JobPhase::succeeded;
      case JobEnd::cancelled: return JobPhase::cancelled;
      case JobEnd::program_lost: return JobPhase::lost;
      case JobEnd::program_failed:
      case JobEnd::deadline: break;
    }
    return JobPhase::failed;
  }
  if (!observed.admitted_at) return JobPhase::queued;
  const auto started = [&](const PodView& view) {
    if (view.is_retired) return true;
    return job.stays ? view.is_running() && !view.is_due() : view.pod.attempt > 0;
  };
  return std::ranges::all_of(views(job, observed), started) ? JobPhase::running : JobPhase::starting;
}

}  // namespace carve::workload
