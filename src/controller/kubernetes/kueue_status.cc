#include "controller/kubernetes/kueue_status.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "controller/kubernetes/json_members.h"
#include "controller/kubernetes/kueue_objects.h"
#include "controller/kubernetes/pod_reading.h"
#include "controller/objects/job_form.h"
#include "core/utc.h"
#include "dialects/pod/keys.h"
#include "kubernetes/format/quantity.h"
#include "objects/states.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

using api::Json;
using objects::Condition;
using objects::PodState;

constexpr const char* index_annotation = "batch.kubernetes.io/job-completion-index";
constexpr const char* failures_annotation = "batch.kubernetes.io/job-index-failure-count";

bool is_true(const Json& object, const char* type) {
  return text_at(condition_of(object, type), "status") == "True";
}

// Returns the sum of a resource over the flavors of a ClusterQueue.
uint64_t usage_of(const Json& status, std::string_view resource) {
  uint64_t out = 0;
  for (const Json& flavor : member(status, "flavorsUsage"))
    for (const Json& one : member(flavor, "resources"))
      if (text_at(one, "name") == resource)
        out += kubernetes::parse_quantity(text_at(one, "total")).value_or(0);
  return out;
}

uint32_t number_in(const Json& pod, const char* annotation) {
  const std::string text = text_at(member(member(pod, "metadata"), "annotations"), annotation);
  uint32_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

PodState job_pod_state(const Json& pod) {
  const std::string phase = text_at(member(pod, "status"), "phase");
  if (phase == "Succeeded") return PodState::succeeded;
  if (phase == "Failed") return PodState::failed;
  if (member(pod, "metadata").contains("deletionTimestamp")) return PodState::stopping;
  if (phase == "Running") return PodState::running;
  return text_at(member(pod, "spec"), "nodeName").empty() ? PodState::waiting : PodState::granted;
}

// Returns the newest pod of each index: Kubernetes keeps those that failed before.
std::map<uint32_t, const Json*> newest_pods(const std::vector<const Json*>& pods) {
  const auto age = [](const Json& pod) {
    return std::pair(number_in(pod, failures_annotation),
                     text_at(member(pod, "metadata"), "creationTimestamp"));
  };
  std::map<uint32_t, const Json*> out;
  for (const Json* pod : pods) {
    const Json*& known = out[number_in(*pod, index_annotation)];
    if (known == nullptr || age(*known) < age(*pod)) known = pod;
  }
  return out;
}

objects::PodStatus pod_status(const Json& pod, uint32_t index) {
  const std::string name = text_at(member(pod, "metadata"), "name");
  return {.role = PodRole::task,
          .index = index,
          .slice = name,
          .program = name,
          .node = text_at(member(pod, "spec"), "nodeName"),
          .devices = devices_of(pod),
          .state = job_pod_state(pod),
          .exit = last_exit(pod),
          .attempt = number_in(pod, failures_annotation)};
}

// Returns the exit status of the first failed pod: 0 if the job has succeeded, none if no pod shows it.
std::optional<uint32_t> exit_status_of(const JobView& view, JobPhase phase) {
  if (phase == JobPhase::succeeded) return 0;
  for (const auto& [index, pod] : newest_pods(view.pods))
    for (const Json& container : member(member(*pod, "status"), "containerStatuses"))
      if (const uint32_t code = count_at(member(member(container, "state"), "terminated"), "exitCode");
          code != 0)
        return code;
  return std::nullopt;
}

// The phase of a job, with the reason.
struct Progress {
  JobPhase phase = JobPhase::queued;
  std::string reason, finished_at;
};

Progress waiting(const JobView& view) {
  if (!view.problem.empty()) return {.phase = JobPhase::queued, .reason = view.problem.message};
  if (view.workload == nullptr) return {.phase = JobPhase::queued, .reason = "waits for Kueue"};
  const Json& reserved = condition_of(*view.workload, "QuotaReserved");
  return {.phase = JobPhase::queued, .reason = text_at(reserved, "message")};
}

Progress running(const JobView& view) {
  Progress out{.phase = JobPhase::starting};
  for (const Json* pod : view.pods) {
    if (job_pod_state(*pod) == PodState::running || job_pod_state(*pod) == PodState::succeeded)
      return {.phase = JobPhase::running};
    if (const PodReason why = reason_of(*pod); out.reason.empty()) out.reason = why.message;
  }
  return out;
}

Progress progress_of(const JobView& view) {
  if (job_spec(view.object).cancelled) return {.phase = JobPhase::cancelled, .reason = "cancelled by a user"};
  if (view.job == nullptr) return waiting(view);
  if (is_true(*view.job, "Complete"))
    return {.phase = JobPhase::succeeded,
            .finished_at = text_at(condition_of(*view.job, "Complete"), "lastTransitionTime")};
  if (const Json& failed = condition_of(*view.job, "Failed"); text_at(failed, "status") == "True")
    return {.phase = JobPhase::failed,
            .reason = text_at(failed, "message"),
            .finished_at = text_at(failed, "lastTransitionTime")};
  const Json& suspended = member(member(*view.job, "spec"), "suspend");
  return suspended.is_boolean() && suspended.get<bool>() ? waiting(view) : running(view);
}

void set_slices(objects::JobStatus& out, const workload::JobNeed& need) {
  out.gpu = slice_text(need);
  out.slices = static_cast<uint32_t>(workload::slice_count(need));
  const workload::Amount amount = workload::first_amount(need);
  out.memory_bytes = amount.memory.count;
  out.share_bp = static_cast<uint32_t>(amount.compute_bp);
}

}  // namespace

bool is_waiting(const Json& workload) {
  if (is_true(workload, "QuotaReserved") || is_true(workload, "Finished")) return false;
  const Json& active = member(member(workload, "spec"), "active");
  return !active.is_boolean() || active.get<bool>();
}

objects::QueueStatus queue_status(const QueueView& view) {
  objects::QueueStatus out{.slices = view.slices};
  if (view.cluster_queue == nullptr) return out;
  const Json& status = member(*view.cluster_queue, "status");
  out.waiting = count_at(status, "pendingWorkloads");
  out.running = count_at(status, "admittedWorkloads");
  out.memory_bytes = usage_of(status, dialects::keys::memory);
  out.compute_bp = percent_bp * (usage_of(status, dialects::keys::compute) +
                                 100 * usage_of(status, dialects::keys::devices));
  return out;
}

Condition queue_condition(const QueueView& view) {
  Condition out{
      .type = "Ready", .status = "False", .reason = view.problem.reason, .message = view.problem.message};
  if (!view.problem.empty()) return out;
  const Json active = view.cluster_queue == nullptr ? Json() : condition_of(*view.cluster_queue, "Active");
  out.status = text_at(active, "status") == "True" ? "True" : "False";
  out.reason = active.is_null() ? "Waiting" : text_at(active, "reason");
  out.message = active.is_null() ? "waits for Kueue to take the ClusterQueue" : text_at(active, "message");
  for (const std::string& warning : view.warnings) out.message += "; " + warning;
  return out;
}

bool is_finished(const objects::JobStatus& status) { return !status.finished_at.empty(); }

objects::JobStatus batch_job_status(const JobView& view, int64_t now_ns) {
  const auto& before = view.object.status.as<objects::JobStatus>();
  objects::JobStatus out = before;
  out.observed_generation = view.object.generation;
  if (is_finished(before)) {
    if (view.object.is_ending) out.phase = JobPhase::deleting;
    return out;
  }
  const Progress progress = progress_of(view);
  out.phase = view.object.is_ending ? JobPhase::deleting : progress.phase;
  out.reason = progress.reason;
  out.position = progress.phase == JobPhase::queued ? view.position : 0;
  out.submitted_at = os::rfc3339(view.object.created_ns, os::Decimals::milliseconds);
  out.warnings = view.warnings;
  if (view.need != nullptr) set_slices(out, *view.need);
  if (view.workload != nullptr && is_true(*view.workload, "Admitted"))
    out.admitted_at = text_at(condition_of(*view.workload, "Admitted"), "lastTransitionTime");
  else if (progress.phase == JobPhase::queued)
    out.admitted_at.clear();
  out.pods.clear();
  for (const auto& [index, pod] : newest_pods(view.pods)) out.pods.push_back(pod_status(*pod, index));
  out.finished_at = progress.finished_at;
  // A cancelled job has ended when its Job is gone.
  if (progress.phase == JobPhase::cancelled && view.job == nullptr) out.finished_at = text_utc(now_ns);
  if (is_finished(out) && progress.phase != JobPhase::cancelled)
    out.exit_status = exit_status_of(view, progress.phase);
  return out;
}

Condition job_condition(const JobView& view, const objects::JobStatus& status) {
  if (!view.problem.empty())
    return {.type = "Progressing",
            .status = "False",
            .reason = view.problem.reason,
            .message = view.problem.message};
  return {.type = "Progressing", .status = "True", .reason = text(status.phase), .message = status.reason};
}

}  // namespace carve::controller
