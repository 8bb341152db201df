#include "controller/kubernetes/workload_status.h"

#include <algorithm>

#include "controller/kubernetes/json_members.h"
#include "controller/kubernetes/pod_reading.h"
#include "controller/kubernetes/workload_objects.h"
#include "controller/objects/gpu_text.h"
#include "controller/objects/service_form.h"
#include "objects/rules/service_terms.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

using api::Json;
using objects::Condition;
using objects::ReplicaState;
using objects::WorkloadPhase;

bool is_ready(const Json& pod) { return text_at(condition_of(pod, "Ready"), "status") == "True"; }

ReplicaState state_of(const Json& pod) {
  if (member(pod, "metadata").contains("deletionTimestamp")) return ReplicaState::stopping;
  const std::string phase = text_at(member(pod, "status"), "phase");
  if (phase == "Succeeded") return ReplicaState::succeeded;
  if (phase == "Failed") return ReplicaState::failed;
  const PodReason reason = reason_of(pod);
  if (reason.phase == WorkloadPhase::image_pull_failed) return ReplicaState::image_pull_failed;
  if (reason.phase == WorkloadPhase::crash_loop_back_off) return ReplicaState::crash_loop_back_off;
  if (is_ready(pod)) return ReplicaState::ready;
  return phase == "Running" ? ReplicaState::running : ReplicaState::starting;
}

uint32_t restarts_of(const Json& pod) {
  uint32_t out = 0;
  for (const Json& container : member(member(pod, "status"), "containerStatuses"))
    out += count_at(container, "restartCount");
  return out;
}

objects::ReplicaStatus replica_status(const Json& pod, uint32_t index, uint32_t revision, uint32_t port) {
  objects::ReplicaStatus out{.index = index,
                             .revision = revision,
                             .slice = text_at(member(pod, "metadata"), "name"),
                             .node = text_at(member(pod, "spec"), "nodeName"),
                             .state = state_of(pod),
                             .port = port,
                             .restarts = restarts_of(pod),
                             .last_exit = last_exit(pod)};
  out.devices = devices_of(pod);
  return out;
}

// The Deployment's numbers.
struct Counts {
  uint32_t desired = 0, replicas = 0, ready = 0, available = 0, updated = 0;
  bool is_current = false;  // Its status describes its newest spec, which was made from the current document.
};

Counts counts_of(const WorkloadView& view, const objects::ServiceSpec& spec) {
  Counts out{.desired = spec.stopped ? 0 : spec.replicas};
  if (view.deployment == nullptr) return out;
  const Json& status = member(*view.deployment, "status");
  const Json& metadata = member(*view.deployment, "metadata");
  if (const Json& replicas = member(member(*view.deployment, "spec"), "replicas");
      replicas.is_number_unsigned())
    out.desired = count_at(member(*view.deployment, "spec"), "replicas");
  out.replicas = count_at(status, "replicas");
  out.ready = count_at(status, "readyReplicas");
  out.available = count_at(status, "availableReplicas");
  out.updated = std::min(count_at(status, "updatedReplicas"), out.available);
  out.is_current =
      text_at(member(metadata, "annotations"), applied_annotation) == applied_mark(view.object) &&
      count_at(status, "observedGeneration") == count_at(metadata, "generation");
  return out;
}

PodReason first_reason(const WorkloadView& view) {
  PodReason out;
  for (const Json* pod : view.pods) {
    PodReason one = reason_of(*pod);
    if (one.phase == WorkloadPhase::running) continue;
    if (out.phase == WorkloadPhase::running || one.phase > out.phase) out = std::move(one);
  }
  return out;
}

WorkloadPhase phase_of(const WorkloadView& view, const objects::ServiceSpec& spec, const Counts& counts,
                       const PodReason& reason) {
  if (view.object.is_ending) return WorkloadPhase::deleting;
  if (spec.stopped && counts.replicas == 0) return WorkloadPhase::stopped;
  if (!counts.is_current) return counts.available > 0 ? WorkloadPhase::updating : WorkloadPhase::waiting;
  if (counts.updated >= counts.desired && counts.replicas == counts.desired) return WorkloadPhase::running;
  if (counts.available > 0 && counts.replicas != counts.ready) return WorkloadPhase::updating;
  return reason.phase == WorkloadPhase::running ? WorkloadPhase::waiting : reason.phase;
}

Condition progressing(const WorkloadView& view, const PodReason& reason) {
  if (!view.problem.empty())
    return {.type = "Progressing",
            .status = "False",
            .reason = view.problem.reason,
            .message = view.problem.message};
  const Json deployed = view.deployment == nullptr ? Json() : condition_of(*view.deployment, "Progressing");
  if (text_at(deployed, "status") == "False")
    return {.type = "Progressing",
            .status = "False",
            .reason = text_at(deployed, "reason"),
            .message = reason.message.empty() ? text_at(deployed, "message") : reason.message};
  return {.type = "Progressing",
          .status = "True",
          .reason = reason.reason.empty() ? "Progressing" : reason.reason,
          .message = reason.message};
}

void add_gpu(objects::ServiceStatus& status, const objects::ServiceSpec& spec) {
  const auto terms = objects::terms_of(spec);
  if (!terms || !terms->gpu) return;
  status.memory_bytes = terms->gpu->memory_bytes.value_or(0);
  status.memory_text = gpu_memory_text(*spec.gpu);
  status.share_bp = terms->gpu->share_bp.value_or(0);
  status.gpu = gpu_text(*spec.gpu, *terms->gpu, status.memory_text);
}

}  // namespace

void add_condition(std::vector<Condition>& out, const std::vector<Condition>& before, Condition condition,
                   int64_t now_ns) {
  const auto old = std::ranges::find(before, condition.type, &Condition::type);
  const bool is_same = old != before.end() && old->status == condition.status;
  condition.last_transition_time =
      is_same ? old->last_transition_time : os::rfc3339(now_ns, os::Decimals::milliseconds);
  out.push_back(std::move(condition));
}

objects::ServiceStatus workload_status(const WorkloadView& view, int64_t now_ns) {
  const auto& before = view.object.status.as<objects::ServiceStatus>();
  const objects::ServiceSpec spec = service_form(view.object);
  const Counts counts = counts_of(view, spec);
  const PodReason reason = first_reason(view);
  objects::ServiceStatus out{.observed_generation = view.object.generation,
                             .updated_at = before.observed_generation == view.object.generation
                                               ? before.updated_at
                                               : os::rfc3339(now_ns, os::Decimals::milliseconds),
                             .phase = phase_of(view, spec, counts, reason),
                             .replicas = counts.replicas,
                             .desired_replicas = counts.desired,
                             .ready_replicas = counts.ready,
                             .updated_replicas = counts.updated,
                             .revision = view.revision,
                             .selector = pod_selector(view.object),
                             .warnings = view.warnings};
  if (spec.port)
    out.endpoint =
        fmt::format("http://{}.{}.svc:{}", view.object.key.name, view.object.key.namespace_, *spec.port);
  const uint32_t port = spec.port ? spec.target_port.value_or(*spec.port) : 0;
  for (const Json* pod : view.pods) {
    out.replica_list.push_back(
        replica_status(*pod, static_cast<uint32_t>(out.replica_list.size()), view.revision, port));
    out.restarts += out.replica_list.back().restarts;
  }
  add_gpu(out, spec);
  const bool is_available = counts.available >= counts.desired && view.deployment != nullptr;
  add_condition(out.conditions, before.conditions,
                {.type = "Available",
                 .status = is_available ? "True" : "False",
                 .reason = is_available ? "ReplicasAvailable" : "ReplicasUnavailable",
                 .message = fmt::format("{} of {} replicas are available", counts.available, counts.desired)},
                now_ns);
  add_condition(out.conditions, before.conditions, progressing(view, reason), now_ns);
  if (spec.autoscale)
    add_condition(
        out.conditions, before.conditions,
        {.type = "ScalingActive",
         .status = "False",
         .reason = "NotSupported",
         .message = "the cluster does not follow spec.autoscale; let a HorizontalPodAutoscaler scale "
                    "this object"},
        now_ns);
  return out;
}

std::vector<Condition> single_condition(const std::string& before, Condition condition, int64_t now_ns) {
  std::vector<Condition> old, out;
  if (const auto json = api::parse(before); json && json->is_object())
    for (const Json& one : member(*json, "conditions"))
      old.push_back({.type = text_at(one, "type"),
                     .status = text_at(one, "status"),
                     .last_transition_time = text_at(one, "lastTransitionTime")});
  add_condition(out, old, std::move(condition), now_ns);
  return out;
}

}  // namespace carve::controller
