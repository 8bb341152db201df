#include "controller/objects/object_changes.h"

#include <algorithm>

#include "controller/objects/job_form.h"
#include "controller/objects/kind_events.h"
#include "controller/objects/kind_table.h"
#include "controller/objects/service_form.h"
#include "core/invariant.h"
#include "objects/budget_object.h"
#include "objects/node_object.h"
#include "objects/pool_object.h"
#include "objects/ray_cluster_object.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using enum objects::EventReason;
using objects::Kind;
using objects::PodState;
using objects::ReplicaState;
using objects::WorkloadPhase;
using Events = std::vector<ChangeEvent>;

const objects::Condition* condition_of(const objects::ServiceStatus& status, std::string_view type) {
  const auto found = std::ranges::find(status.conditions, type, &objects::Condition::type);
  return found == status.conditions.end() ? nullptr : &*found;
}

// Returns the condition if it has this status now and its status, reason or message has changed.
const objects::Condition* changed_condition(const objects::ServiceStatus& before,
                                            const objects::ServiceStatus& after, std::string_view type,
                                            std::string_view status) {
  const objects::Condition *now = condition_of(after, type), *then = condition_of(before, type);
  if (now == nullptr || now->status != status) return nullptr;
  const bool is_same = then != nullptr && then->status == now->status && then->reason == now->reason &&
                       then->message == now->message;
  return is_same ? nullptr : now;
}

std::string replica_text(const objects::ReplicaStatus& replica) {
  return fmt::format("replica {} of revision {}", replica.index, replica.revision);
}

bool runs(const objects::ReplicaStatus& replica) {
  return replica.state == ReplicaState::running || replica.state == ReplicaState::ready;
}

// Returns whether the replica's program has ended and is not restarted.
bool has_run(const objects::ReplicaStatus& replica) {
  return replica.state == ReplicaState::succeeded || replica.state == ReplicaState::failed;
}

// Returns whether the replica's program ended by itself in the meantime and will be restarted.
bool has_failed(const objects::ReplicaStatus& before, const objects::ReplicaStatus& after) {
  return (after.state == ReplicaState::crash_loop_back_off ||
          after.state == ReplicaState::image_pull_failed) &&
         (before.state != after.state || after.restarts > before.restarts);
}

void add_replica_events(Events& out, const objects::ReplicaStatus& before,
                        const objects::ReplicaStatus& after) {
  const std::string name = replica_text(after);
  if (has_failed(before, after))
    out.push_back({replica_failed, fmt::format("{} ended: {}; it will be restarted", name, after.last_exit)});
  if (has_run(after) && !has_run(before))
    out.push_back({replica_ended, fmt::format("{} ended: {}", name, after.last_exit)});
  if (runs(after) && (!runs(before) || after.restarts > before.restarts))
    out.push_back({replica_started, after.restarts == 0 ? name + " started"
                                                        : fmt::format("{} started (start number {})", name,
                                                                      after.restarts + 1)});
  if (after.state == ReplicaState::ready && before.state != ReplicaState::ready)
    out.push_back({replica_ready, fmt::format("{} is serving at the endpoint", name)});
  if (after.state == ReplicaState::running && before.state == ReplicaState::ready)
    out.push_back(
        {replica_not_ready, fmt::format("{} fails its probes and was removed from the endpoint", name)});
}

void add_events_of_replicas(Events& out, const objects::ServiceStatus& before,
                            const objects::ServiceStatus& after) {
  const auto find = [](const objects::ServiceStatus& status, const std::string& slice) {
    const auto found = std::ranges::find(status.replica_list, slice, &objects::ReplicaStatus::slice);
    return found == status.replica_list.end() ? nullptr : &*found;
  };
  for (const objects::ReplicaStatus& replica : after.replica_list) {
    const objects::ReplicaStatus* const known = find(before, replica.slice);
    if (known == nullptr)
      out.push_back({replica_created, fmt::format("{}: slice {}{}", replica_text(replica), replica.slice,
                                                  replica.node.empty() ? "" : " on node " + replica.node)});
    add_replica_events(out, known != nullptr ? *known : objects::ReplicaStatus{}, replica);
  }
  for (const objects::ReplicaStatus& replica : before.replica_list) {
    if (find(after, replica.slice) != nullptr || has_run(replica)) continue;
    // While a program runs, the last exit belongs to a previous attempt.
    const bool has_ended = !runs(replica) && replica.state != ReplicaState::starting;
    out.push_back(
        {replica_ended, replica.last_exit.empty() || !has_ended
                            ? fmt::format("{} ended", replica_text(replica))
                            : fmt::format("{} ended: {}", replica_text(replica), replica.last_exit)});
  }
}

// Adds events for the condition Progressing, which has the reason why replicas are not in their desired
// state.
void add_progress_events(Events& out, const objects::ServiceStatus& before,
                         const objects::ServiceStatus& after) {
  if (const auto* stuck = changed_condition(before, after, "Progressing", "False"))
    out.push_back({progress_deadline_exceeded, stuck->message});
  const objects::Condition* const progress = changed_condition(before, after, "Progressing", "True");
  if (progress == nullptr) return;
  if (progress->reason == "NoCapacity" || progress->reason == "SliceRefused")
    out.push_back({placement_refused, progress->message});
  if (progress->reason == "Progressing" && !progress->message.empty())
    out.push_back({resized, progress->message});
}

void add_status_events(Events& out, const objects::ServiceStatus& before,
                       const objects::ServiceStatus& after) {
  if (after.revision != before.revision) out.push_back({revised, fmt::format("revision {}", after.revision)});
  add_progress_events(out, before, after);
  const auto* const scaling = condition_of(after, "ScalingActive");
  if (scaling != nullptr && before.desired_replicas != 0 && after.desired_replicas != before.desired_replicas)
    out.push_back({autoscaled, fmt::format("{} -> {} replicas: {}", before.desired_replicas,
                                           after.desired_replicas, scaling->message)});
  // A rejected slice is also a failed step, but has its own event.
  const auto* const progress = condition_of(after, "Progressing");
  if (const auto* failed = changed_condition(before, after, "Degraded", "True");
      failed != nullptr && (progress == nullptr || progress->message != failed->message))
    out.push_back({step_failed, failed->message});
  add_events_of_replicas(out, before, after);
  const bool was_rolling = before.phase != WorkloadPhase::running && before.phase != WorkloadPhase::stopped &&
                           before.phase != WorkloadPhase::deleting;
  if (after.phase == WorkloadPhase::running && was_rolling &&
      after.updated_replicas != before.updated_replicas)
    out.push_back(
        {rollout_completed, fmt::format("revision {} runs with {} of {} replicas available", after.revision,
                                        after.updated_replicas, after.desired_replicas)});
}

void add_spec_events(Events& out, const Object& before, const Object& after) {
  const objects::ServiceSpec then = service_form(before), now = service_form(after);
  const size_t others = out.size();
  if (now.stopped != then.stopped)
    out.push_back({now.stopped ? stopped : started,
                   fmt::format("{} replica{}", now.replicas, now.replicas == 1 ? "" : "s")});
  if (now.replicas != then.replicas)
    out.push_back({scaled, fmt::format("{} -> {} replicas", then.replicas, now.replicas)});
  if (now.restarted_at != then.restarted_at && !now.restarted_at.empty())
    out.push_back({restart_requested, "every replica is replaced"});
  if (out.size() == others) out.push_back({changed, fmt::format("generation {}", after.generation)});
}

}  // namespace

void add_workload_events(Events& out, const Object& before, const Object& after) {
  if (before.spec != after.spec) add_spec_events(out, before, after);
  if (after.is_ending && !before.is_ending) out.push_back({deleting, "its replicas are stopped"});
  if (before.status != after.status)
    add_status_events(out, before.status.as<objects::ServiceStatus>(),
                      after.status.as<objects::ServiceStatus>());
}

namespace {

// Returns "KEY: A -> B, KEY2: (none) -> C" for the labels that differ.
std::string label_changes(const std::map<std::string, std::string>& before,
                          const std::map<std::string, std::string>& after) {
  std::map<std::string, std::string> keys = before;
  keys.insert(after.begin(), after.end());
  const auto value = [](const auto& labels, const std::string& key) {
    const auto found = labels.find(key);
    return found == labels.end() ? std::string("(none)") : found->second;
  };
  std::string out;
  for (const auto& [key, any] : keys)
    if (value(before, key) != value(after, key))
      out +=
          fmt::format("{}{}: {} -> {}", out.empty() ? "" : ", ", key, value(before, key), value(after, key));
  return out;
}

void add_node_spec_events(Events& out, const objects::NodeSpec& before, const objects::NodeSpec& after) {
  if (after.schedulable != before.schedulable)
    out.push_back(after.schedulable ? ChangeEvent{uncordoned, "it grants new slices again"}
                                    : ChangeEvent{cordoned, "by " + after.cordoned});
  if (after.draining && !before.draining)
    out.push_back({drain_requested, "replicas of services move to other nodes"});
  if (after.stopped != before.stopped)
    out.push_back(after.stopped ? ChangeEvent{stop_requested, "it grants no new slices"}
                                : ChangeEvent{start_requested, "it grants new slices again"});
  if (after.restarting != before.restarting)
    out.push_back(after.restarting ? ChangeEvent{restart_requested, "it restarts when its slices have ended"}
                                   : ChangeEvent{restarted, "the desired settings are in effect"});
  if (after.pool != before.pool)
    out.push_back({changed, fmt::format("pool '{}' -> '{}'", before.pool, after.pool)});
}

void add_setting_event(Events& out, objects::EventReason reason, const objects::NodeSetting& before,
                       const objects::NodeSetting& after) {
  if (before.effective.empty() || before.effective == after.effective) return;
  out.push_back({reason, fmt::format("{} -> {}", before.effective, after.effective)});
}

void add_device_events(Events& out, const objects::NodeStatus& before, const objects::NodeStatus& after) {
  for (const objects::NodeDeviceStatus& device : after.devices) {
    const auto known = std::ranges::find(before.devices, device.uuid, &objects::NodeDeviceStatus::uuid);
    const HealthState then = known == before.devices.end() ? HealthState::ok : known->health.state;
    if (device.health.state == then) continue;
    const std::string name = fmt::format("device {}", device.index);
    if (device.health.state == HealthState::ok)
      out.push_back({device_healthy, name + " is ok"});
    else
      out.push_back({device_unhealthy,
                     fmt::format("{} is {}: {}", name, text(device.health.state), device.health.reason)});
  }
}

void add_node_status_events(Events& out, const Object& node, const objects::NodeStatus& before,
                            const objects::NodeStatus& after) {
  if (after.state != before.state)
    out.push_back(
        {after.state == NodePhase::running    ? node_running
         : after.state == NodePhase::starting ? node_starting
                                              : node_stopped,
         fmt::format("{} -> {}", before.state.empty() ? "unknown" : text(before.state), text(after.state))});
  const bool refuses = !node.spec.as<objects::NodeSpec>().schedulable;
  if (refuses && before.slices > 0 && after.slices == 0) out.push_back({drained, "its last slice has ended"});
  add_setting_event(out, policy_changed, before.policy, after.policy);
  add_setting_event(out, memory_unit_changed, before.memory_unit, after.memory_unit);
  add_device_events(out, before, after);
}

}  // namespace

void add_node_events(Events& out, const Object& before, const Object& after) {
  if (before.spec != after.spec)
    add_node_spec_events(out, before.spec.as<objects::NodeSpec>(), after.spec.as<objects::NodeSpec>());
  if (before.status != after.status)
    add_node_status_events(out, after, before.status.as<objects::NodeStatus>(),
                           after.status.as<objects::NodeStatus>());
}

namespace {

std::string drift_text(const std::vector<objects::PoolDrift>& drift) {
  std::string out;
  for (const objects::PoolDrift& d : drift)
    out += fmt::format("{}node {} has {} '{}', but the pool has '{}'", out.empty() ? "" : "; ", d.node,
                       d.label, d.node_value, d.pool_value);
  return out;
}

}  // namespace

void add_pool_events(Events& out, const Object& before, const Object& after) {
  if (before.spec != after.spec) out.push_back({changed, fmt::format("generation {}", after.generation)});
  if (before.status == after.status) return;
  const auto& then = before.status.as<objects::PoolStatus>();
  const auto& now = after.status.as<objects::PoolStatus>();
  if (now.slicing.available && !then.slicing.available)
    out.push_back({slicing_available, "its devices can be sliced"});
  if (!now.slicing.available && now.slicing.failed != then.slicing.failed)
    out.push_back({slicing_unavailable, now.slicing.checks.empty() ? "" : now.slicing.checks.back().message});
  const std::string drift = drift_text(now.drift);
  if (!drift.empty() && drift != drift_text(then.drift)) out.push_back({labels_drifted, drift});
}

void add_budget_events(Events& out, const Object& before, const Object& after) {
  if (before.spec != after.spec) out.push_back({changed, fmt::format("generation {}", after.generation)});
  const auto& then = before.status.as<objects::BudgetStatus>();
  const auto& now = after.status.as<objects::BudgetStatus>();
  const bool is_new_month = then.from != now.from;
  if (now.reached != 0 && (is_new_month || now.reached > then.reached))
    out.push_back(
        {budget_reached, fmt::format("{}% have been used since {}{}", now.percent, now.from.substr(0, 10),
                                     now.holds ? "; new jobs of its account wait" : "")});
}

namespace {

// Returns the event of a job's end, or no value for another phase.
std::optional<objects::EventReason> end_reason(const Word<JobPhase>& phase) {
  if (phase == JobPhase::succeeded) return job_succeeded;
  if (phase == JobPhase::failed) return job_failed;
  if (phase == JobPhase::cancelled) return job_cancelled;
  if (phase == JobPhase::lost) return job_lost;
  return std::nullopt;
}

// Returns "workers[0]: 2 -> 3; workers[1]: ..." for the groups whose number changed.
std::string scaling_text(const Object& before, const Object& after) {
  const auto& then = before.spec.as<objects::RayClusterSpec>().workers;
  const auto& now = after.spec.as<objects::RayClusterSpec>().workers;
  std::string out;
  for (size_t i = 0; i < std::min(then.size(), now.size()); ++i)
    if (then[i].replicas != now[i].replicas)
      out += fmt::format("{}workers[{}]: {} -> {}", out.empty() ? "" : "; ", i, then[i].replicas,
                         now[i].replicas);
  return out;
}

}  // namespace

void add_job_events(Events& out, const Object& before, const Object& after) {
  if (after.key.kind == Kind::ray_cluster) {
    if (const std::string scaling = scaling_text(before, after); !scaling.empty())
      out.push_back({scaled, scaling});
  } else if (before.spec != after.spec) {
    out.push_back({cancel_requested, "its programs are stopped"});
  }
  if (after.is_ending && !before.is_ending) out.push_back({deleting, "its programs are stopped"});
  if (before.status == after.status) return;
  const auto& then = before.status.as<objects::JobStatus>();
  const auto& now = after.status.as<objects::JobStatus>();
  if (then.admitted_at.empty() && !now.admitted_at.empty())
    out.push_back(
        {admitted, fmt::format("{} slice{} requested", now.slices, now.slices == 1 ? " is" : "s are")});
  if (!then.admitted_at.empty() && now.phase == JobPhase::queued && then.phase != JobPhase::queued)
    out.push_back({requeued, now.reason});
  for (const objects::PodStatus& pod : now.pods) {
    const auto known = std::ranges::find(then.pods, pod.program, &objects::PodStatus::program);
    const bool is_new =
        known == then.pods.end() || known->state != pod.state || known->attempt != pod.attempt;
    if (is_new && (pod.state == PodState::failed || pod.state == PodState::lost))
      out.push_back({pod_failed, fmt::format("{} {} ended: {}", text(pod.role), pod.index, pod.exit)});
  }
  if (now.phase == then.phase) return;
  if (const auto reason = end_reason(now.phase)) out.push_back({*reason, now.reason});
}

void add_generation_event(Events& out, const Object& before, const Object& after) {
  if (before.spec != after.spec) out.push_back({changed, fmt::format("generation {}", after.generation)});
}

std::string made_workload(const Object& object) {
  const uint32_t replicas = service_form(object).replicas;
  return fmt::format("{} replica{}, account {}", replicas, replicas == 1 ? "" : "s", object.account);
}

std::string made_job(const Object& object) {
  return fmt::format("in queue {}, account {}", job_spec(object).queue, object.account);
}

std::string made_node(const Object&) { return "from the controller's command line"; }

std::string made_pool(const Object&) { return "node pool"; }

namespace {

std::string made_text(const Object& object) {
  if (const auto made = row_of(object.key.kind).made) return made(object);
  return std::string(objects::text_of(object.key.kind).singular);
}

}  // namespace

std::vector<ChangeEvent> events_of_added(const Object& after) {
  Events out = {{created, made_text(after)}};
  Object before = after;
  before.status = {};
  std::ranges::move(events_between(before, after), std::back_inserter(out));
  return out;
}

std::vector<ChangeEvent> events_between(const Object& before, const Object& after) {
  Events out;
  if (before.labels != after.labels)
    out.push_back({labels_changed, label_changes(before.labels, after.labels)});
  row_of(after.key.kind).add_changes(out, before, after);
  return out;
}

std::vector<ChangeEvent> events_of_deleted(const Object& before) {
  return {{deleted, row_of(before.key.kind).deleted}};
}

}  // namespace carve::controller
