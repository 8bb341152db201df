#include "controller/jobs/job_status.h"

#include <algorithm>
#include <sstream>

#include "os/clock.h"

namespace carve::controller {
namespace {

using objects::PodState;
using workload::JobEnd;
using workload::PodId;
using workload::ProgramState;

std::string moment(int64_t ns) { return ns == 0 ? "" : os::rfc3339(ns, os::Decimals::milliseconds); }

PodState state_of(const PodRecord& pod, const ObservedProgram& program) {
  using enum PodState;
  if (program.state == ProgramState::running) return pod.terminated_ns == 0 ? running : stopping;
  if (program.state == ProgramState::exited && program.attempt == pod.attempt) {
    if (pod.terminated_ns != 0) return ended;
    if (program.is_lost) return lost;
    return program.exit_status == 0 ? succeeded : failed;
  }
  return pod.is_granted ? granted : waiting;
}

// Returns how the program ended. Details that came from the slice (exit_of) are kept after its end.
std::string kept_exit(const objects::PodStatus& now, const std::vector<objects::PodStatus>& before) {
  for (const objects::PodStatus& pod : before)
    if (pod.role == now.role && pod.index == now.index && pod.attempt == now.attempt &&
        pod.exit.starts_with(now.exit + ";"))
      return pod.exit;
  return now.exit;
}

objects::PodStatus pod_status(const JobStatusInput& in, PodId id) {
  objects::PodStatus out{.role = id.role,
                         .index = id.index,
                         .program = pod_name(in.object.key.name, id),
                         .state = PodState::waiting};
  const auto pod = in.pods.find(id);
  if (pod == in.pods.end()) return out;
  const PodRecord& record = pod->second;
  const auto seen = in.programs.find(id);
  const ObservedProgram program = seen == in.programs.end() ? ObservedProgram{} : seen->second;
  out.slice = record.is_granted ? record.program : "";
  out.node = record.is_granted ? record.node : "";
  std::istringstream words(record.devices);
  for (std::string uuid; words >> uuid;) out.devices.push_back(uuid);
  out.state = state_of(record, program);
  out.exit = program.state == ProgramState::exited ? program.exit : "";
  out.attempt = record.attempt;
  return out;
}

// Returns the exit status of the first main pod that failed.
uint32_t exit_status(const JobStatusInput& in) {
  for (const auto& [id, program] : in.programs) {
    const bool is_main = id.role == PodRole::driver || id.role == PodRole::task;
    if (is_main && program.state == ProgramState::exited && program.exit_status != 0)
      return program.exit_status;
  }
  return 1;
}

std::string failed_pods(const JobStatusInput& in, const objects::JobStatus& status) {
  std::string out;
  for (const objects::PodStatus& pod : status.pods)
    if (pod.state == PodState::failed || pod.state == PodState::lost)
      out += fmt::format("{}{} {}: {}", out.empty() ? "" : "; ", text(pod.role), pod.index, pod.exit);
  if (!out.empty()) return out;
  return in.why_not_started.empty() ? "its programs were stopped" : in.why_not_started;
}

// Returns a message about the programs of a Ray cluster that have ended; each is restarted until the cluster
// is deleted.
std::string restarting_pods(const objects::JobStatus& status) {
  std::string out;
  for (const objects::PodStatus& pod : status.pods)
    if (pod.state == PodState::failed || pod.state == PodState::lost || pod.state == PodState::succeeded)
      out += fmt::format("{}{} {} ended: {}; it will be restarted", out.empty() ? "" : "; ", text(pod.role),
                         pod.index, pod.exit);
  return out;
}

void add_end(const JobStatusInput& in, objects::JobStatus& out) {
  switch (in.observed.finished->end) {
    case JobEnd::all_succeeded:
      out.exit_status = 0;
      out.reason = "";
      return;
    case JobEnd::program_failed: out.reason = failed_pods(in, out); break;
    case JobEnd::program_lost:
      out.reason = "the result of a program is unknown: " + failed_pods(in, out);
      break;
    case JobEnd::deadline:
      out.reason = fmt::format("deadlineSeconds {} was exceeded", in.form.spec.deadline_seconds);
      break;
    case JobEnd::cancelled: out.reason = "a user cancelled the job"; break;
  }
  out.exit_status = exit_status(in);
}

}  // namespace

objects::JobStatus job_status(const JobStatusInput& in, objects::JobStatus before) {
  objects::JobStatus out = std::move(before);
  const bool had_end = !out.finished_at.empty();
  out.observed_generation = in.object.generation;
  out.phase = in.object.is_ending ? JobPhase::deleting : phase(in.job, in.observed);
  out.submitted_at = moment(in.object.created_ns);
  out.admitted_at = moment(in.record.admitted_ns);
  out.finished_at = moment(in.record.finished_ns);
  out.gpu = slice_text(in.form.pods.need);
  out.slices = static_cast<uint32_t>(workload::slice_count(in.form.pods.need));
  const workload::Amount amount = workload::first_amount(in.form.pods.need);
  out.memory_bytes = amount.memory.count;
  out.share_bp = static_cast<uint32_t>(amount.compute_bp);
  const bool has_head = std::ranges::any_of(in.programs, [](const auto& one) {
    return one.first.role == PodRole::head && one.second.state == ProgramState::running;
  });
  const bool is_shown = has_head && in.form.spec.engine == JobEngine::ray;
  out.dashboard = is_shown ? fmt::format("http://127.0.0.1:{}", in.record.port) : "";
  out.dashboard_token = is_shown ? in.record.secret : "";
  // Programs that are stopped because the job has ended keep the state that they had at that time.
  std::vector<objects::PodStatus> pods;
  for (const workload::PodSpec& spec : in.job.pods) {
    pods.push_back(pod_status(in, spec.id));
    if (!pods.back().exit.empty()) pods.back().exit = kept_exit(pods.back(), out.pods);
  }
  out.pods = std::move(pods);
  if (in.observed.finished && !had_end)
    add_end(in, out);
  else if (!in.observed.finished)
    out.reason = in.observed.admitted_at ? in.problem : in.why_requeued;
  if (out.reason.empty() && in.observed.admitted_at && in.object.key.kind == objects::Kind::ray_cluster)
    out.reason = restarting_pods(out);
  return out;
}

}  // namespace carve::controller
