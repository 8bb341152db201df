#include "controller/services/service_status.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "controller/objects/gpu_text.h"
#include "objects/rules/service_terms.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

using objects::ReplicaState;
using objects::WorkloadPhase;
using workload::EndpointState;
using workload::ProgramState;

WorkloadPhase shown_phase(workload::ServicePhase phase) {
  using enum workload::ServicePhase;
  switch (phase) {
    case stopped: return WorkloadPhase::stopped;
    case waiting: return WorkloadPhase::waiting;
    case running: return WorkloadPhase::running;
    case updating: return WorkloadPhase::updating;
    case failed: break;
  }
  return WorkloadPhase::failed;
}

constexpr std::string_view engine_failed = "exit status 125:";  // podman's own exit status.

// Returns whether podman failed because it has no image: it exited with its own status and with one of its
// messages.
bool has_no_image(std::string_view image, std::string_view exit) {
  constexpr std::string_view texts[] = {"initializing source",
                                        "short-name",
                                        "image not known",
                                        "pinging container registry",
                                        "manifest unknown",
                                        "unauthorized",
                                        "repository name",
                                        "invalid reference",
                                        "pull"};
  // Images in a file or a folder. The message about a missing or damaged file does not contain the image's
  // name.
  constexpr std::string_view transports[] = {"oci-archive:", "docker-archive:", "oci:", "dir:"};
  constexpr std::string_view file_texts[] = {"lstat ", "opening file", "untarring file", "index.json",
                                             "manifest.json"};
  const auto contains = [&](std::string_view text) { return exit.find(text) != std::string_view::npos; };
  const bool in_file = std::ranges::any_of(transports, [&](auto name) { return image.starts_with(name); });
  return exit.starts_with(engine_failed) &&
         (std::ranges::any_of(texts, contains) || (in_file && std::ranges::any_of(file_texts, contains)));
}

bool lacks_image(const StatusInput& in, const std::string& slice) {
  const auto program = in.programs.find(slice);
  return !in.spec.run.image.empty() && program != in.programs.end() &&
         has_no_image(in.spec.run.image, program->second.exit);
}

// Returns the reason why programs are restarted repeatedly.
WorkloadPhase crash_phase(const StatusInput& in) {
  const bool no_image = std::ranges::any_of(
      in.replicas, [&](const ReplicaRecord& replica) { return lacks_image(in, replica.slice); });
  return no_image ? WorkloadPhase::image_pull_failed : WorkloadPhase::crash_loop_back_off;
}

// Returns the phase for lists, which is the reason for missing replicas if it is known.
WorkloadPhase phase_of(const StatusInput& in, const workload::ServiceStatus& counted,
                       const std::string& ended) {
  if (in.object.is_ending) return WorkloadPhase::deleting;
  if (!ended.empty()) return ended == succeeded_exit ? WorkloadPhase::succeeded : WorkloadPhase::failed;
  if (counted.phase == workload::ServicePhase::waiting && counted.crash_looping > 0) return crash_phase(in);
  return shown_phase(counted.phase);
}

ReplicaState state_of(const StatusInput& in, const workload::Replica& replica, const std::string& slice) {
  using enum ReplicaState;
  if (replica.retired_at) return stopping;
  if (workload::has_run(in.desired, replica))
    return replica.end == workload::ProgramEnd::succeeded ? succeeded : failed;
  if (replica.program == ProgramState::exited)
    return lacks_image(in, slice) ? image_pull_failed : crash_loop_back_off;
  if (replica.program == ProgramState::not_started) return starting;
  return replica.endpoint == EndpointState::serving ? ready : running;
}

objects::ReplicaStatus replica_status(const StatusInput& in, size_t i, const objects::ServiceStatus& before) {
  const workload::Replica& observed = in.observed.replicas[i];
  const ReplicaRecord& record = in.replicas[i];
  objects::ReplicaStatus out{.index = workload::ordinal(record.replica),
                             .revision = record.revision,
                             .slice = record.slice,
                             .node = record.node,
                             .state = state_of(in, observed, record.slice),
                             .port = record.port,
                             .restarts = record.restarts};
  const auto slice = in.slices.find(record.slice);
  if (slice != in.slices.end())
    for (const ObservedPart& part : slice->second.parts) out.devices.push_back(part.device);
  if (const auto program = in.programs.find(record.slice); program != in.programs.end()) {
    out.last_exit = exit_of(program->second, slice == in.slices.end() ? nullptr : &slice->second);
    if (program->second.is_waiting && out.state == ReplicaState::running) out.state = ReplicaState::starting;
  }
  const auto known = std::ranges::find(before.replica_list, record.slice, &objects::ReplicaStatus::slice);
  // While the next attempt runs, the end of the previous one is shown.
  if (out.last_exit.empty() && !observed.retired_at && record.restarts > 0 &&
      known != before.replica_list.end())
    out.last_exit = known->last_exit;
  return out;
}

// Returns the row of a run-once program that has ended. Its end was recorded in a turn in which its slice was
// live.
objects::ReplicaStatus ended_status(const ReplicaRecord& record, const objects::ServiceStatus& before) {
  objects::ReplicaStatus out{.index = workload::ordinal(record.replica),
                             .revision = record.revision,
                             .slice = record.slice,
                             .node = record.node,
                             .restarts = record.restarts};
  const auto known = std::ranges::find(before.replica_list, record.slice, &objects::ReplicaStatus::slice);
  if (known != before.replica_list.end()) out.last_exit = known->last_exit;
  out.state = out.last_exit == succeeded_exit ? ReplicaState::succeeded : ReplicaState::failed;
  return out;
}

// Adds the condition, with its previous time if its status did not change.
void add_condition(objects::ServiceStatus& status, const objects::ServiceStatus& before,
                   objects::Condition condition, workload::Ns now) {
  const auto old = std::ranges::find(before.conditions, condition.type, &objects::Condition::type);
  const bool same = old != before.conditions.end() && old->status == condition.status;
  condition.last_transition_time =
      same ? old->last_transition_time : os::rfc3339(now, os::Decimals::milliseconds);
  status.conditions.push_back(std::move(condition));
}

// Returns "node n1 is drained; replica 0 stays there" if `stays` is true, "...; replica 0 moves" if not, and
// an empty string if no replica is on such a node.
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

// Returns "; replica 0 of revision 1 is stopped first" if an old replica makes room for a new one.
std::string stopped_first(const StatusInput& in) {
  for (size_t i = 0; i < in.replicas.size(); ++i)
    if (in.observed.replicas[i].retired_at && in.replicas[i].revision != in.record.revision)
      return fmt::format("; replica {} of revision {} is stopped first",
                         workload::ordinal(in.replicas[i].replica), in.replicas[i].revision);
  return "";
}

constexpr const char* running_stay =
    "; stopping an old replica would not make room, so the old replicas keep running";

// Returns ": exit status 1", the last exit of a program that waits for its back-off, or an empty string.
std::string last_exit(const StatusInput& in) {
  for (size_t i = 0; i < in.replicas.size(); ++i) {
    const auto program = in.programs.find(in.replicas[i].slice);
    if (in.observed.replicas[i].program != ProgramState::exited || program == in.programs.end()) continue;
    const auto slice = in.slices.find(in.replicas[i].slice);
    const std::string exit = exit_of(program->second, slice == in.slices.end() ? nullptr : &slice->second);
    if (!exit.empty()) return ": " + exit;
  }
  return "";
}

// Returns the condition with podman's message about the image of the first replica that lacks it.
objects::Condition pull_condition(const StatusInput& in) {
  std::string_view why = "podman printed no message";
  for (const ReplicaRecord& replica : in.replicas) {
    if (!lacks_image(in, replica.slice)) continue;
    why = in.programs.at(replica.slice).exit;
    for (const std::string_view prefix : {engine_failed, std::string_view(" Error: ")})
      if (why.starts_with(prefix)) why.remove_prefix(prefix.size());
    break;
  }
  return {
      .type = "Progressing",
      .status = "True",
      .reason = std::string(carve::text(WorkloadPhase::image_pull_failed)),
      .message = fmt::format("cannot pull image '{}'; the pull will be retried: {}", in.spec.run.image, why)};
}

// Returns why the first replica with a running program is not ready; empty if there is no such replica.
std::string not_ready(const StatusInput& in) {
  if (!in.desired.has_port) return "";
  for (size_t i = 0; i < in.replicas.size(); ++i) {
    const workload::Replica& replica = in.observed.replicas[i];
    const auto program = in.programs.find(in.replicas[i].slice);
    if (replica.retired_at || replica.program != ProgramState::running || replica.probe.ready_since ||
        program == in.programs.end() || program->second.is_waiting)
      continue;
    const bool is_fixed = in.spec.target_port == in.replicas[i].port;
    return fmt::format(
        "replica {} is not ready: 127.0.0.1:{} does not answer its probe; the program must listen on {}",
        workload::ordinal(in.replicas[i].replica), in.replicas[i].port,
        is_fixed ? "this port, spec.targetPort" : "$PORT");
  }
  return "";
}

objects::Condition progressing(const StatusInput& in, const workload::ServiceStatus& counted) {
  if (!counted.progressing)
    return {.type = "Progressing",
            .status = "False",
            .reason = "ProgressDeadlineExceeded",
            .message = fmt::format("no replica became available within {} s; the old replicas keep running",
                                   in.spec.update.progress_deadline_seconds)};
  if (counted.lacks_capacity && in.refusal != nullptr) {
    const std::string stays = drained_text(in, /*stays=*/true);
    return {.type = "Progressing",
            .status = "True",
            .reason = in.refusal->kind == FailureKind::insufficient_capacity ? "NoCapacity" : "SliceRefused",
            .message = stays + (stays.empty() ? "" : ": ") + in.refusal->message +
                       (in.lacks_room.empty() ? stopped_first(in) : running_stay)};
  }
  if (!in.lacks_room.empty())
    return {.type = "Progressing",
            .status = "True",
            .reason = "NoCapacity",
            .message = in.lacks_room + std::string(running_stay)};
  // A slice was requested but not granted because no node can be reached now.
  const bool waits = !in.observed.requested.empty() && !in.problem.empty();
  const std::string drained = drained_text(in, waits);
  if (!drained.empty() && waits)
    return {.type = "Progressing",
            .status = "True",
            .reason = "SliceRefused",
            .message = drained + ": " + in.problem};
  if (!drained.empty())
    return {.type = "Progressing", .status = "True", .reason = "NodeDrained", .message = drained};
  if (counted.crash_looping > 0 && crash_phase(in) == WorkloadPhase::image_pull_failed)
    return pull_condition(in);
  if (counted.crash_looping > 0)
    return {.type = "Progressing",
            .status = "True",
            .reason = std::string(carve::text(crash_phase(in))),
            .message = fmt::format("{} program{} ended and will be started again{}", counted.crash_looping,
                                   counted.crash_looping == 1 ? "" : "s", last_exit(in))};
  if (std::string why = not_ready(in); !why.empty())
    return {.type = "Progressing", .status = "True", .reason = "NotReady", .message = std::move(why)};
  return {.type = "Progressing", .status = "True", .reason = "Progressing", .message = in.resized};
}

// Adds the conditions of a HorizontalPodAutoscaler.
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

// Returns the different quotas of a slice.
std::string quotas_text(const ObservedSlice& slice) {
  std::vector<std::string> out;
  for (const ObservedPart& part : slice.parts) {
    std::string quota(text(Bytes{part.memory_bytes}));
    if (std::ranges::find(out, quota) == out.end()) out.push_back(std::move(quota));
  }
  return fmt::format("{}", fmt::join(out, " and "));
}

}  // namespace

std::string exit_of(const ObservedProgram& program, const ObservedSlice* slice) {
  const bool is_refused =
      slice != nullptr && slice->refused_at != 0 && slice->refused_at >= program.started_at;
  if (program.exit.empty() || !is_refused) return program.exit;
  return fmt::format("{}; an allocation was refused by its GPU memory quota of {}", program.exit,
                     quotas_text(*slice));
}

objects::ServiceStatus service_status(const StatusInput& in, const objects::ServiceStatus& before,
                                      workload::Ns now) {
  const workload::ServiceStatus counted = workload::status(in.desired, in.observed, now);
  const std::string& ended = !in.spec.stopped ? in.ended : in.ended.empty() ? before.ended : in.ended;
  objects::ServiceStatus out{.observed_generation = in.object.generation,
                             .updated_at = before.observed_generation == in.object.generation
                                               ? before.updated_at
                                               : os::rfc3339(now, os::Decimals::milliseconds),
                             .phase = phase_of(in, counted, ended),
                             .replicas = static_cast<uint32_t>(in.observed.replicas.size()),
                             .desired_replicas = in.desired.replicas,
                             .ready_replicas = counted.ready,
                             .updated_replicas = counted.updated,
                             .revision = in.record.revision,
                             .ended = ended,
                             .warnings = before.warnings};
  if (in.record.port != 0) out.endpoint = fmt::format("http://127.0.0.1:{}", in.record.port);
  for (size_t i = 0; i < in.replicas.size(); ++i) {
    out.replica_list.push_back(replica_status(in, i, before));
    out.restarts += in.replicas[i].restarts;
  }
  for (const ReplicaRecord& replica : in.ended_replicas)
    out.replica_list.push_back(ended_status(replica, before));
  if (const auto terms = objects::terms_of(in.spec); terms && terms->gpu) {
    out.memory_bytes = terms->gpu->memory_bytes.value_or(0);
    out.memory_text = gpu_memory_text(*in.spec.gpu);
    if (terms->gpu->memory_units && !in.slices.empty()) {
      // The size of a memory unit was fixed when the slice was granted.
      out.memory_bytes = in.slices.begin()->second.memory_bytes;
      out.memory_text = fmt::format("{} x {} = {}", *terms->gpu->memory_units,
                                    text(Bytes{out.memory_bytes / *terms->gpu->memory_units}),
                                    text(Bytes{out.memory_bytes}));
    }
    out.share_bp = terms->gpu->share_bp.value_or(0);
    out.gpu = gpu_text(*in.spec.gpu, *terms->gpu, out.memory_text);
  }
  // A serving service stays available while it scales or is updated.
  const auto was = std::ranges::find(before.conditions, "Available", &objects::Condition::type);
  const bool was_available = was != before.conditions.end() && was->status == "True";
  const bool available = counted.available >= in.desired.replicas || (was_available && counted.available > 0);
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
