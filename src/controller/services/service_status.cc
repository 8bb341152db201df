#include "controller/services/service_status.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "fronts/service_terms.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

using workload::EndpointState;
using workload::ProgramState;

const char* phase_text(workload::ServicePhase phase) {
  using enum workload::ServicePhase;
  switch (phase) {
    case stopped: return "Stopped";
    case waiting: return "Waiting";
    case running: return "Running";
    case updating: return "Updating";
    case failed: break;
  }
  return "Failed";
}

const char* state_text(const workload::Replica& replica) {
  if (replica.retired_at) return "Stopping";
  if (replica.program == ProgramState::exited) return "CrashLoopBackOff";
  if (replica.program == ProgramState::not_started) return "Starting";
  return replica.endpoint == EndpointState::serving ? "Ready" : "Running";
}

// Returns how the program ended; empty: it has not. A refusal of its attempt by the quota is named, because
// most programs end by it.
std::string exit_of(const ObservedProgram& program, const ObservedSlice* slice) {
  const bool is_refused =
      slice != nullptr && slice->refused_at != 0 && slice->refused_at >= program.started_at;
  if (program.exit.empty() || !is_refused) return program.exit;
  return fmt::format("{}; its GPU memory quota of {} refused memory", program.exit,
                     text(Bytes{slice->memory_bytes}));
}

objects::ReplicaStatus replica_status(const StatusInput& in, size_t i, const objects::ServiceStatus& before) {
  const workload::Replica& observed = in.observed.replicas[i];
  const ReplicaRecord& record = in.replicas[i];
  objects::ReplicaStatus out{.index = workload::ordinal(record.replica),
                             .revision = record.revision,
                             .slice = record.slice,
                             .node = record.node,
                             .state = state_text(observed),
                             .port = record.port,
                             .restarts = record.restarts};
  const auto slice = in.slices.find(record.slice);
  if (slice != in.slices.end()) out.devices = slice->second.devices;
  if (const auto program = in.programs.find(record.slice); program != in.programs.end()) {
    out.last_exit = exit_of(program->second, slice == in.slices.end() ? nullptr : &slice->second);
    if (program->second.is_waiting && out.state == "Running") out.state = "Starting";
  }
  const auto known = std::ranges::find(before.replica_list, record.slice, &objects::ReplicaStatus::slice);
  // The end of the former attempt is shown while the next one runs.
  if (out.last_exit.empty() && !observed.retired_at && record.restarts > 0 &&
      known != before.replica_list.end())
    out.last_exit = known->last_exit;
  return out;
}

// Adds the condition; its time is the former one if its status was the same.
void add_condition(objects::ServiceStatus& status, const objects::ServiceStatus& before,
                   objects::Condition condition, workload::Ns now) {
  const auto old = std::ranges::find(before.conditions, condition.type, &objects::Condition::type);
  const bool same = old != before.conditions.end() && old->status == condition.status;
  condition.last_transition_time =
      same ? old->last_transition_time : os::rfc3339(now, os::Decimals::milliseconds);
  status.conditions.push_back(std::move(condition));
}

// Returns "node n1 is drained; replica 0 stays there" if it `stays`, else "...; replica 0 moves", and an
// empty text if no replica is on such a node.
std::string drained_text(const StatusInput& in, bool stays) {
  std::set<std::string> nodes;
  std::set<uint32_t> replicas;
  for (size_t i = 0; i < in.replicas.size(); ++i) {
    if (!in.observed.replicas[i].must_move || in.observed.replicas[i].retired_at) continue;
    nodes.insert(in.replicas[i].node);
    replicas.insert(workload::ordinal(in.replicas[i].replica));
  }
  if (replicas.empty()) return "";
  const bool one = replicas.size() == 1;
  const char* verb = stays ? (one ? "stays there" : "stay there") : (one ? "moves" : "move");
  return fmt::format("{} {} drained; replica{} {} {}", nodes.size() == 1 ? "node" : "nodes",
                     fmt::format("{} {}", fmt::join(nodes, ", "), nodes.size() == 1 ? "is" : "are"),
                     one ? "" : "s", fmt::join(replicas, ", "), verb);
}

// Returns "; replica 0 of revision 1 is stopped first" if a former replica makes room for the next one.
std::string stopped_first(const StatusInput& in) {
  for (size_t i = 0; i < in.replicas.size(); ++i)
    if (in.observed.replicas[i].retired_at && in.replicas[i].revision != in.record.revision)
      return fmt::format("; replica {} of revision {} is stopped first",
                         workload::ordinal(in.replicas[i].replica), in.replicas[i].revision);
  return "";
}

objects::Condition progressing(const StatusInput& in, const workload::ServiceStatus& counted) {
  if (!counted.progressing)
    return {.type = "Progressing",
            .status = "False",
            .reason = "ProgressDeadlineExceeded",
            .message = fmt::format("no replica became available within {} s; the former replicas stay",
                                   in.spec.update.progress_deadline_seconds)};
  if (counted.lacks_capacity && in.refusal != nullptr) {
    const std::string stays = drained_text(in, /*stays=*/true);
    return {.type = "Progressing",
            .status = "True",
            .reason = in.refusal->kind == FailureKind::insufficient_capacity ? "NoCapacity" : "SliceRefused",
            .message = stays + (stays.empty() ? "" : ": ") + in.refusal->sentence + stopped_first(in)};
  }
  // A slice that is requested and not granted: no node can be asked now.
  const bool waits = !in.observed.requested.empty() && !in.problem.empty();
  const std::string drained = drained_text(in, waits);
  if (!drained.empty() && waits)
    return {.type = "Progressing",
            .status = "True",
            .reason = "SliceRefused",
            .message = drained + ": " + in.problem};
  if (!drained.empty())
    return {.type = "Progressing", .status = "True", .reason = "NodeDrained", .message = drained};
  if (counted.crash_looping > 0)
    return {.type = "Progressing",
            .status = "True",
            .reason = "CrashLoopBackOff",
            .message = fmt::format("{} program{} ended and will be started again", counted.crash_looping,
                                   counted.crash_looping == 1 ? "" : "s")};
  return {.type = "Progressing", .status = "True", .reason = "Progressing", .message = in.resized};
}

// The conditions of a HorizontalPodAutoscaler.
void add_scaling(objects::ServiceStatus& status, const objects::ServiceStatus& before,
                 const workload::AutoscaleDecision& decision, workload::Ns now) {
  using Limit = workload::AutoscaleDecision::Limit;
  const bool measured = decision.limit != Limit::unmeasured;
  add_condition(
      status, before,
      {.type = "ScalingActive",
       .status = measured ? "True" : "False",
       .reason = measured ? "MetricMeasured" : "MetricNotMeasured",
       .message = fmt::format("{} replica{}: {}", decision.replicas,
                              decision.replicas == 1 ? " is desired" : "s are desired", decision.reason)},
      now);
  const char* reason = decision.limit == Limit::min        ? "TooFewReplicas"
                       : decision.limit == Limit::max      ? "TooManyReplicas"
                       : decision.limit == Limit::capacity ? "NoCapacity"
                                                           : "DesiredWithinRange";
  const bool limited = measured && decision.limit != Limit::none;
  add_condition(status, before,
                {.type = "ScalingLimited",
                 .status = limited ? "True" : "False",
                 .reason = reason,
                 .message = limited ? decision.reason : ""},
                now);
}

std::string gpu_text(const fronts::GpuTerms& gpu, const std::string& memory_text) {
  const std::string several = gpu.devices > 1 ? fmt::format(" on each of {} devices", gpu.devices) : "";
  if (gpu.exclusive) return fmt::format("{} whole device{}", gpu.devices, gpu.devices == 1 ? "" : "s");
  const std::string share =
      gpu.share_bp ? fmt::format("{} of a device", text(Share{*gpu.share_bp}).c_str()) : "no compute limit";
  return fmt::format("{}, {}{}", memory_text, share, several);
}

}  // namespace

objects::ServiceStatus service_status(const StatusInput& in, const objects::ServiceStatus& before,
                                      workload::Ns now) {
  const workload::ServiceStatus counted = workload::status(in.desired, in.observed, now);
  objects::ServiceStatus out{.observed_generation = in.object.generation,
                             .updated_at = before.observed_generation == in.object.generation
                                               ? before.updated_at
                                               : os::rfc3339(now, os::Decimals::milliseconds),
                             .phase = phase_text(counted.phase),
                             .replicas = static_cast<uint32_t>(in.observed.replicas.size()),
                             .desired_replicas = in.desired.replicas,
                             .ready_replicas = counted.ready,
                             .updated_replicas = counted.updated,
                             .revision = in.record.revision,
                             .warnings = before.warnings};
  if (in.record.port != 0) out.endpoint = fmt::format("http://127.0.0.1:{}", in.record.port);
  for (size_t i = 0; i < in.replicas.size(); ++i) {
    out.replica_list.push_back(replica_status(in, i, before));
    out.restarts += in.replicas[i].restarts;
  }
  if (const auto terms = fronts::terms_of(in.spec); terms && terms->gpu) {
    out.memory_bytes = terms->gpu->memory_bytes.value_or(0);
    out.memory_text = fronts::memory_text(in.spec.gpu->memory);
    if (terms->gpu->memory_units && !in.slices.empty()) {
      // How much a unit is was decided when the slice was granted.
      out.memory_bytes = in.slices.begin()->second.memory_bytes;
      out.memory_text = fmt::format("{} x {} = {}", *terms->gpu->memory_units,
                                    text(Bytes{out.memory_bytes / *terms->gpu->memory_units}),
                                    text(Bytes{out.memory_bytes}));
    }
    out.share_bp = terms->gpu->share_bp.value_or(0);
    out.gpu = gpu_text(*terms->gpu, out.memory_text);
  }
  const bool available = counted.available >= in.desired.replicas;
  add_condition(
      out, before,
      {.type = "Available",
       .status = available ? "True" : "False",
       .reason = available ? "ReplicasAvailable" : "ReplicasUnavailable",
       .message = fmt::format("{} of {} replicas are available", counted.available, in.desired.replicas)},
      now);
  add_condition(out, before, progressing(in, counted), now);
  if (in.scaling) add_scaling(out, before, *in.scaling, now);
  if (!in.problem.empty())
    add_condition(out, before,
                  {.type = "Degraded", .status = "True", .reason = "StepFailed", .message = in.problem}, now);
  return out;
}

}  // namespace carve::controller
