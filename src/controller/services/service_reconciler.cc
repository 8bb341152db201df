#include "controller/services/service_reconciler.h"

#include <algorithm>

#include "controller/objects/service_form.h"
#include "controller/services/service_spec.h"
#include "controller/services/service_status.h"
#include "core/invariant.h"
#include "dialects/pod/manifest.h"
#include "objects/node_object.h"
#include "os/log.h"

namespace carve::controller {
namespace {

using workload::EndpointState;
using workload::ProgramState;
using Action = workload::ServiceAction;

// Returns the name of a new replica, such as binpack-0 for a StatefulSet if no other replica has that name,
// otherwise binpack-1-0. The previous replica with this index has ended, because a StatefulSet has no surge.
std::string new_replica_name(const Object& object, const WorkloadRecords& records, workload::ReplicaId id) {
  const auto names = object.annotations.find(dialects::replica_names_annotation);
  if (names != object.annotations.end() && names->second == dialects::ordinal_names) {
    std::string name = fmt::format("{}-{}", object.key.name, id.index);
    if (!records.has_replica(name)) return name;
  }
  return fmt::format("{}-{}-{}", object.key.name, id.revision, id.index);
}

}  // namespace

void ServiceReconciler::keep_problem(Turn& turn, const Failure& failure) {
  if (turn.problem.empty()) turn.problem = failure.message;
  os::log::debug("{}: {}", text(turn.object->key), failure.message);
}

bool ServiceReconciler::reconcile(Ns now) {
  changed_ = false;
  if (auto states = effects_.endpoint_states())
    endpoint_states_ = std::move(*states);
  else
    return report_endpoints(states.error().message), false;
  if (!adopted_) adopt_endpoints();
  find_drained_nodes();
  for (const auto& object : objects_.workloads()) serve(object, now);
  publish_endpoints();
  return changed_;
}

// Reads the servers that the previous controller published before any step that may fail, so that a service
// that cannot be observed keeps its servers.
void ServiceReconciler::adopt_endpoints() {
  for (const auto& object : objects_.workloads())
    for (const ReplicaRecord& replica : records_.replicas(object->uid)) {
      const auto state = endpoint_states_.find(replica.slice);
      if (replica.is_granted && state != endpoint_states_.end() && state->second == EndpointState::serving)
        served_[object->uid][replica.slice] = replica.port;
    }
  adopted_ = true;
}

void ServiceReconciler::find_drained_nodes() {
  drained_nodes_.clear();
  for (const auto& node : objects_.list(objects::Kind::node))
    if (node->spec.as<objects::NodeSpec>().draining) drained_nodes_.insert(node->key.name);
}

void ServiceReconciler::serve(const ObjectRegistry::Pointer& object, Ns now) {
  Turn turn;
  turn.object = object;
  turn.spec = service_form(*object);
  turn.record = records_.workload(object->uid);
  run_changed_again(turn);
  if (!turn.spec.stopped || object->is_ending) forget_ended(turn);
  if (assign_port(turn) && revise(turn, now)) {
    turn.desired = desired_service(*turn.object, turn.spec, turn.record);
    request_slices(turn, now);
    const bool is_observed = observe(turn, now);
    scale(turn, is_observed && turn.silent_nodes.empty(), now);
    turn.observed.fits_without = [&](std::span<const workload::ReplicaId> ended) {
      const auto room = check_room(turn, ended);
      if (!room) turn.lacks_room = room.error().message;
      return room.has_value();
    };
    if (is_observed)
      for (const Action& action : workload::actions(turn.desired, turn.observed, now))
        carry_out(turn, action, now);
  }
  changed_ |= turn.changed;
  write_status(turn, now);
  remove_if_ended(turn);
}

bool ServiceReconciler::assign_port(Turn& turn) {
  if (!turn.spec.port || turn.record.port != 0) return true;
  const auto port = effects_.free_port(Effects::PortUse::endpoint, records_.endpoint_ports());
  if (!done(turn, port)) return false;
  turn.record.port = *port;
  return done(turn, records_.write(turn.record));
}

// Makes the object's spec the current revision. If only the size of the slices changed and their devices have
// room, the revision of the running slices is updated; otherwise a new revision is created.
bool ServiceReconciler::revise(Turn& turn, Ns now) {
  const std::string wanted = revision_spec(turn.spec);
  const std::string present = records_.spec(turn.record.uid, turn.record.revision);
  if (turn.record.revision != 0 && present == wanted) return true;
  if (turn.object->is_ending) return true;
  resized_.erase(turn.record.uid);
  if (turn.record.revision != 0 && resize(turn, records_.form(turn.record.uid, turn.record.revision))) {
    const RevisionRecord same{.uid = turn.record.uid,
                              .revision = turn.record.revision,
                              .created_ns = now,
                              .spec = wanted,
                              .object_spec = turn.object->spec.json()};
    turn.changed = true;
    return done(turn, records_.write(turn.record, same));
  }
  ++turn.record.revision;
  turn.record.revised_ns = now;
  turn.changed = true;
  refusals_.erase(turn.record.uid);
  os::log::info(cause_of(*turn.object), "{}: revision {}", text(turn.object->key), turn.record.revision);
  return done(turn, records_.write(turn.record, {.uid = turn.record.uid,
                                                 .revision = turn.record.revision,
                                                 .created_ns = now,
                                                 .spec = wanted,
                                                 .object_spec = turn.object->spec.json()}));
}

// Changes the slices of the current revision to the new size: all or none.
bool ServiceReconciler::resize(Turn& turn, const objects::ServiceSpec& old) {
  if (!differ_in_size_alone(old, turn.spec)) return false;
  const api::SliceChange wanted = slice_change(turn.spec), before = slice_change(old);
  if (!wanted.memory_bytes || !before.memory_bytes) return false;
  std::vector<ReplicaRecord> done_already;
  for (const ReplicaRecord& replica : records_.replicas(turn.record.uid)) {
    if (replica.revision != turn.record.revision || !replica.is_granted || replica.retired_ns != 0) continue;
    const auto resized = effects_.resize(replica.node, replica.slice, wanted);
    if (resized) {
      done_already.push_back(replica);
      continue;
    }
    for (const ReplicaRecord& back : done_already)
      if (auto undone = effects_.resize(back.node, back.slice, before); !undone)
        os::log::warning(cause_of(*turn.object), "slice {}: cannot restore its previous size: {}", back.slice,
                         undone.error().message);
    resized_[turn.record.uid] =
        fmt::format("not changed in place: {}; the replicas are replaced", resized.error().message);
    return false;
  }
  resized_[turn.record.uid] = "changed in place, without a restart";
  os::log::info(cause_of(*turn.object), "{}: {} slices {}", text(turn.object->key), done_already.size(),
                resized_[turn.record.uid]);
  return true;
}

// Decides the number of replicas of a service that scales with its load, unless the service is stopped.
void ServiceReconciler::scale(Turn& turn, bool is_observed, Ns now) {
  const std::string& uid = turn.record.uid;
  if (!turn.spec.autoscale || turn.desired.replicas == 0) return scaler_.forget(uid);
  const uint32_t before = turn.object->status.as<objects::ServiceStatus>().desired_replicas;
  if (before != 0) turn.desired.replicas = before;
  if (is_observed) {
    const auto refusal = refusals_.find(uid);
    turn.scaling = scaler_.decide(uid,
                                  {.spec = turn.spec,
                                   .before = before,
                                   .observed = turn.observed,
                                   .replicas = turn.replicas,
                                   .slices = turn.slices,
                                   .load = effects_.load(turn.object->key.namespace_, turn.object->key.name),
                                   .refusal = refusal != refusals_.end() ? &refusal->second : nullptr},
                                  now);
    turn.desired.replicas = turn.scaling->replicas;
  }
}

void ServiceReconciler::carry_out(Turn& turn, const Action& action, Ns now) {
  using Kind = Action::Kind;
  if (action.kind == Kind::create_slice) return create(turn, action.replica, now);
  if (action.kind == Kind::finish) return finish(turn);
  if (action.kind == Kind::complete) {
    turn.changed = true;
    turn.record.complete_revision = turn.desired.revision;
    done(turn, records_.write(turn.record));
    return;
  }
  const auto found = std::ranges::find_if(turn.replicas, [&](const ReplicaRecord& record) {
    return record.revision == action.replica.revision && record.replica == action.replica.index;
  });
  invariant(found != turn.replicas.end(), "an action names an observed replica");
  ReplicaRecord replica = *found;
  const bool asks_agent = action.kind == Kind::start || action.kind == Kind::end_slice;
  if (asks_agent && turn.silent_nodes.contains(replica.node)) return;  // Retried in later turns.
  turn.changed = true;
  switch (action.kind) {
    case Kind::start: return start(turn, replica, now);
    case Kind::publish: served_[replica.uid][replica.slice] = replica.port; return;
    case Kind::withdraw: served_[replica.uid].erase(replica.slice); return;
    case Kind::retire:
      replica.retired_ns = now;
      done(turn, records_.write(replica));
      return;
    case Kind::terminate:
      if (!done(turn, effects_.terminate(replica.slice))) return;
      // The signal may have reached no process, so it is sent again.
      if (turn.observed.replicas[static_cast<size_t>(found - turn.replicas.begin())].is_starting) return;
      replica.terminated_ns = now;
      done(turn, records_.write(replica));
      return;
    case Kind::kill: done(turn, effects_.kill(replica.slice)); return;
    case Kind::end_slice: return end_slice(turn, replica);
    case Kind::create_slice:
    case Kind::complete:
    case Kind::finish: break;
  }
}

// Returns the port of a new replica: the one on which its program listens, or one that is unused.
Outcome<uint32_t> ServiceReconciler::program_port(const Turn& turn) {
  const auto used = records_.program_ports();
  if (!turn.spec.target_port) return effects_.free_port(Effects::PortUse::program, used);
  const uint32_t port = *turn.spec.target_port;
  if (std::ranges::find(used, port) == used.end()) return port;
  return failure(FailureKind::unavailable,
                 "spec.targetPort: {}: another replica listens on this port; this replica is created when "
                 "the other one has ended",
                 port);
}

void ServiceReconciler::create(Turn& turn, workload::ReplicaId id, Ns now) {
  turn.changed = true;
  ReplicaRecord replica{.slice = new_replica_name(*turn.object, records_, id),
                        .uid = turn.record.uid,
                        .revision = id.revision,
                        .replica = id.index};
  replica.request_id = fmt::format("{}-{}-{}-{}", replica.uid, id.revision, id.index, now);
  if (records_.has_replica(replica.slice)) {
    const auto taken = failure(
        FailureKind::already_exists,
        "the name {} belongs to a replica of another service; rename one of the services", replica.slice);
    return keep_problem(turn, taken.value());
  }
  if (is_taken_ && is_taken_(replica.slice)) {
    const auto taken = failure(FailureKind::unavailable,
                               "program {} without a database record is still running; the replica is "
                               "created when that program has ended",
                               replica.slice);
    return keep_problem(turn, taken.value());
  }
  if (turn.spec.port) {
    const auto port = program_port(turn);
    if (!done(turn, port)) return;
    replica.port = *port;
  }
  done(turn, records_.write(replica));
}

void ServiceReconciler::start(Turn& turn, const ReplicaRecord& known, Ns now) {
  ReplicaRecord replica = known;
  const ObservedProgram& program = turn.programs[replica.slice];
  if (program.state == ProgramState::exited && replica.attempt == program.attempt) {
    replica.failures =
        workload::failures_after(replica.failures, workload::between(program.started_at, program.ended_at));
    ++replica.restarts;
  }
  replica.attempt = program.attempt + 1;
  // The port is not reserved in the kernel, so another program may have taken it. A repeated start keeps the
  // port, because the program may already run.
  const bool must_stay = turn.spec.target_port == replica.port;
  if (replica.port != 0 && known.attempt < replica.attempt && !effects_.is_free(replica.port)) {
    if (must_stay) {
      const auto taken = failure(
          FailureKind::unavailable,
          "spec.targetPort: {}: another program uses this port; stop it, or change the port", replica.port);
      return keep_problem(turn, taken.value());
    }
    const auto port = effects_.free_port(Effects::PortUse::program, records_.program_ports());
    if (!done(turn, port)) return;
    os::log::warning(cause_of(*turn.object),
                     "{}: replica {} gets port {}, because another program uses port {}",
                     text(turn.object->key), replica.replica, *port, replica.port);
    replica.port = *port;
  }
  if (!done(turn, records_.write(replica)) || !done(turn, keep_owner(*turn.object, replica))) return;
  const objects::ServiceSpec& spec = records_.form(replica.uid, replica.revision);
  if (!done(turn, effects_.start(program_start(*turn.object, spec, replica, replica.attempt)))) return;
  asked_starts_[replica.slice] = {.attempt = replica.attempt, .at = now};
  os::log::info(cause_of(*turn.object), "{}: replica {} of revision {} started, attempt {}",
                text(turn.object->key), replica.replica, replica.revision, replica.attempt);
}

void ServiceReconciler::end_slice(Turn& turn, const ReplicaRecord& replica) {
  if (!replica.node.empty()) {
    done(turn, effects_.end_slice(replica.node, replica.slice));
    return;  // The next turns observe its end.
  }
  forget(turn, replica);
}

// Removes all state of a replica whose slice has ended. Another program may then use its port, so the
// endpoint no longer serves it. A run-once program that has ended keeps its log.
bool ServiceReconciler::forget(Turn& turn, const ReplicaRecord& replica) {
  probes_.erase(replica.slice);
  asked_starts_.erase(replica.slice);
  served_[replica.uid].erase(replica.slice);
  const bool has_run = !turn.object->status.as<objects::ServiceStatus>().ended.empty();
  if (has_run && turn.spec.stopped && !turn.object->is_ending && replica.attempt > 0)
    return keep_log(turn, replica);
  effects_.forget_program(replica.slice);
  return done(turn, records_.remove(replica));
}

void ServiceReconciler::write_status(Turn& turn, Ns now) {
  const auto refusal = refusals_.find(turn.record.uid);
  const ObjectKey& key = turn.object->key;
  if (turn.problem.empty() && turn.record.port != 0)
    turn.problem = effects_.endpoint_problem(key.namespace_, key.name);
  StatusInput input{.object = *turn.object,
                    .spec = turn.spec,
                    .record = turn.record,
                    .desired = turn.desired,
                    .observed = turn.observed,
                    .replicas = turn.replicas,
                    .ended_replicas = turn.ended_replicas,
                    .programs = turn.programs,
                    .slices = turn.slices,
                    .refusal = refusal != refusals_.end() ? &refusal->second : nullptr,
                    .lacks_room = turn.lacks_room,
                    .problem = turn.problem,
                    .ended = turn.ended,
                    .resized = resized_[turn.record.uid],
                    .scaling = turn.scaling};
  const TypedJson status = service_status(input, turn.object->status.as<objects::ServiceStatus>(), now);
  if (status == turn.object->status) return;
  const auto written = objects_.update(turn.object->key, [&](Object& object) -> Outcome<void> {
    if (object.uid == turn.object->uid) object.status = status;
    return {};
  });
  if (!written && written.error().kind != FailureKind::not_found)
    os::log::error(cause_of(*turn.object), "{}", written.error().message);
}

void ServiceReconciler::remove_if_ended(Turn& turn) {
  const std::string& uid = turn.record.uid;
  if (!turn.object->is_ending || !records_.replicas(uid).empty()) return;
  served_.erase(uid);
  if (!done(turn, objects_.remove(turn.object->key))) return;
  records_.forget(uid);
  refusals_.erase(uid);
  resized_.erase(uid);
  scaler_.forget(uid);
  os::log::info(cause_of(*turn.object), "{}: deleted", text(turn.object->key));
  changed_ = true;
}

// A lasting problem is logged only once.
void ServiceReconciler::report_endpoints(const std::string& problem) {
  if (!problem.empty() && problem != endpoints_problem_)
    os::log::warning(Cause{.who = "endpoints"}, "{}", problem);
  endpoints_problem_ = problem;
}

void ServiceReconciler::publish_endpoints() {
  std::vector<ServiceEndpoint> wanted;
  for (const auto& object : objects_.workloads()) {
    const WorkloadRecord record = records_.workload(object->uid);
    if (record.port == 0) continue;
    ServiceEndpoint endpoint{
        .name_space = object->key.namespace_, .name = object->key.name, .port = record.port, .servers = {}};
    for (const auto& [slice, port] : served_[object->uid]) endpoint.servers.push_back({slice, port});
    wanted.push_back(std::move(endpoint));
  }
  const auto published = effects_.publish(wanted);
  report_endpoints(published ? "" : published.error().message);
  if (wanted != published_) changed_ = true;
  published_ = std::move(wanted);
}

}  // namespace carve::controller
