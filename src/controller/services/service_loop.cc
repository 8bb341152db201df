#include "controller/services/service_loop.h"

#include <algorithm>

#include "controller/objects/service_form.h"
#include "controller/services/service_spec.h"
#include "controller/services/service_status.h"
#include "core/invariant.h"
#include "os/log.h"
#include "wire/api/json.h"
#include "wire/objects/node_object.h"

namespace carve::controller {
namespace {

using K = FailureKind;
using workload::EndpointState;
using workload::ProgramState;
using Action = workload::ServiceAction;

std::string replica_name(const Object& object, uint32_t revision, uint32_t index) {
  return fmt::format("{}-{}-{}", object.key.name, revision, index);
}

}  // namespace

void ServiceLoop::keep_problem(Pass& pass, const Failure& failure) {
  if (pass.problem.empty()) pass.problem = failure.sentence;
  os::log::debug("{}: {}", text(pass.object->key), failure.sentence);
}

bool ServiceLoop::turn(Ns now) {
  changed_ = false;
  if (auto states = effects_.endpoint_states())
    endpoint_states_ = std::move(*states);
  else
    return os::log::warning("{}", states.error().sentence), false;
  if (!adopted_) adopt_endpoints();
  find_drained_nodes();
  for (const auto& object : objects_.workloads()) serve(object, now);
  publish_endpoints();
  return changed_;
}

// Reads the servers that the last controller published, before anything that may fail: a service that cannot
// be observed keeps its servers.
void ServiceLoop::adopt_endpoints() {
  for (const auto& object : objects_.workloads())
    for (const ReplicaRecord& replica : records_.replicas(object->uid)) {
      const auto state = endpoint_states_.find(replica.slice);
      if (replica.is_granted && state != endpoint_states_.end() && state->second == EndpointState::serving)
        served_[object->uid][replica.slice] = replica.port;
    }
  adopted_ = true;
}

void ServiceLoop::find_drained_nodes() {
  drained_nodes_.clear();
  for (const auto& node : objects_.list(objects::Kind::node)) {
    const auto spec = api::read<objects::NodeSpec>(node->spec, api::Reading::lenient);
    if (spec && spec->draining) drained_nodes_.insert(node->key.name);
  }
}

void ServiceLoop::serve(const ObjectRegistry::Pointer& object, Ns now) {
  Pass pass;
  pass.object = object;
  pass.spec = service_form(*object);
  pass.record = records_.workload(object->uid);
  if (assign_port(pass) && revise(pass, now)) {
    pass.desired = desired_service(*object, pass.spec, pass.record);
    request_slices(pass, now);
    const bool is_observed = observe(pass, now);
    scale(pass, is_observed && pass.silent_nodes.empty(), now);
    if (is_observed)
      for (const Action& action : workload::actions(pass.desired, pass.observed, now))
        carry_out(pass, action, now);
  }
  changed_ |= pass.changed;
  write_status(pass, now);
  remove_if_ended(pass);
}

bool ServiceLoop::assign_port(Pass& pass) {
  if (!pass.spec.port || pass.record.port != 0) return true;
  const auto port = effects_.free_port(Effects::PortUse::endpoint, records_.endpoint_ports());
  if (!done(pass, port)) return false;
  pass.record.port = *port;
  return done(pass, records_.write(pass.record));
}

// Makes the object's spec the present revision: of the running slices if only their size changed and their
// devices have it, else a new one.
bool ServiceLoop::revise(Pass& pass, Ns now) {
  const std::string wanted = revision_spec(pass.spec);
  const std::string present = records_.spec(pass.record.uid, pass.record.revision);
  if (pass.record.revision != 0 && present == wanted) return true;
  if (pass.object->is_ending) return true;
  resized_.erase(pass.record.uid);
  if (pass.record.revision != 0 && resize(pass, stored_spec(present))) {
    const RevisionRecord same{.uid = pass.record.uid,
                              .revision = pass.record.revision,
                              .created_ns = now,
                              .spec = wanted,
                              .object_spec = pass.object->spec};
    pass.changed = true;
    return done(pass, records_.write(pass.record, same));
  }
  ++pass.record.revision;
  pass.record.revised_ns = now;
  pass.changed = true;
  refusals_.erase(pass.record.uid);
  os::log::info("{}: revision {}", text(pass.object->key), pass.record.revision);
  return done(pass, records_.write(pass.record, {.uid = pass.record.uid,
                                                 .revision = pass.record.revision,
                                                 .created_ns = now,
                                                 .spec = wanted,
                                                 .object_spec = pass.object->spec}));
}

// Gives the slices of the present revision the new size: all, or none.
bool ServiceLoop::resize(Pass& pass, const objects::ServiceSpec& old) {
  if (!differ_in_size_alone(old, pass.spec)) return false;
  const api::SliceChange wanted = slice_change(pass.spec), before = slice_change(old);
  if (!wanted.memory_bytes || !before.memory_bytes) return false;
  std::vector<ReplicaRecord> done_already;
  for (const ReplicaRecord& replica : records_.replicas(pass.record.uid)) {
    if (replica.revision != pass.record.revision || !replica.is_granted || replica.retired_ns != 0) continue;
    const auto resized = effects_.resize(replica.node, replica.slice, wanted);
    if (resized) {
      done_already.push_back(replica);
      continue;
    }
    for (const ReplicaRecord& back : done_already)
      if (auto undone = effects_.resize(back.node, back.slice, before); !undone)
        os::log::warning("slice {}: its former size cannot be set: {}", back.slice, undone.error().sentence);
    resized_[pass.record.uid] =
        fmt::format("not changed in place: {}; the replicas are replaced", resized.error().sentence);
    return false;
  }
  resized_[pass.record.uid] = "changed in place, without a restart";
  os::log::info("{}: {} slices {}", text(pass.object->key), done_already.size(), resized_[pass.record.uid]);
  return true;
}

void ServiceLoop::observe_slices(Pass& pass) {
  std::set<std::string> nodes;
  for (const ReplicaRecord& replica : records_.replicas(pass.record.uid))
    if (replica.is_granted && !replica.node.empty()) nodes.insert(replica.node);
  for (const std::string& node : nodes) {
    auto slices = effects_.slices(node);
    if (done(pass, slices))
      pass.slices.merge(*slices);
    else
      pass.silent_nodes.insert(node);
  }
}

bool ServiceLoop::observe(Pass& pass, Ns now) {
  pass.observed.complete_revision = pass.record.complete_revision;
  observe_slices(pass);
  for (const ReplicaRecord& replica : records_.replicas(pass.record.uid))
    if (!replica.is_granted)
      pass.observed.requested.push_back({replica.revision, replica.replica});
    else if (!observe_replica(pass, replica, now))
      return false;
  if (const auto refusal = refusals_.find(pass.record.uid); refusal != refusals_.end())
    pass.observed.refusal = refusal->second.refusal;
  return true;
}

bool ServiceLoop::observe_replica(Pass& pass, const ReplicaRecord& replica, Ns now) {
  const auto program = effects_.program(replica.slice);
  if (!done(pass, program)) return false;
  pass.programs[replica.slice] = *program;
  // A slice outlives its agent, so the slices of a node that does not answer count as living.
  if (!replica.node.empty() && !pass.slices.contains(replica.slice) &&
      !pass.silent_nodes.contains(replica.node)) {
    // The slice has ended: the loop ended it, or a user did. Its program ended with it.
    if (program->state == ProgramState::running) return done(pass, effects_.kill(replica.slice));
    refusals_.erase(replica.uid);
    pass.changed = true;
    return forget(pass, replica);
  }
  workload::Replica out{
      .id = {replica.revision, replica.replica},
      .program = program->state,
      .program_since = program->state == ProgramState::exited ? program->ended_at : program->started_at,
      .failures = replica.failures};
  if (program->state == ProgramState::exited)
    out.failures =
        workload::failures_after(replica.failures, workload::between(program->started_at, program->ended_at));
  // Until it is executed it has run for no time, so a program without a port is not ready.
  if (program->is_waiting) out.program_since = now;
  if (is_starting(replica, *program, now)) {
    out.program = ProgramState::running;
    out.program_since = now;
    out.probe = {};
  }
  if (replica.retired_ns != 0) out.retired_at = std::min(replica.retired_ns, now);
  if (replica.terminated_ns != 0) out.terminated_at = std::min(replica.terminated_ns, now);
  out.must_move = drained_nodes_.contains(replica.node);
  const auto state = endpoint_states_.find(replica.slice);
  if (state != endpoint_states_.end()) out.endpoint = state->second;
  if (served_[replica.uid].contains(replica.slice)) out.endpoint = EndpointState::serving;
  update_probe(pass, replica, *program, out, now);
  pass.observed.replicas.push_back(out);
  pass.replicas.push_back(replica);
  return true;
}

// Decides the number of replicas of a service that scales by its load. One that is stopped does not.
void ServiceLoop::scale(Pass& pass, bool is_observed, Ns now) {
  const std::string& uid = pass.record.uid;
  if (!pass.spec.autoscale || pass.desired.replicas == 0) return scaler_.forget(uid);
  const auto status = api::read<objects::ServiceStatus>(pass.object->status, api::Reading::lenient);
  const uint32_t before = status ? status->desired_replicas : 0;
  if (before != 0) pass.desired.replicas = before;
  if (is_observed) {
    const auto refusal = refusals_.find(uid);
    pass.scaling = scaler_.decide(uid,
                                  {.spec = pass.spec,
                                   .before = before,
                                   .observed = pass.observed,
                                   .replicas = pass.replicas,
                                   .slices = pass.slices,
                                   .load = effects_.load(pass.object->key.namespace_, pass.object->key.name),
                                   .refusal = refusal != refusals_.end() ? &refusal->second : nullptr},
                                  now);
    pass.desired.replicas = pass.scaling->replicas;
  }
}

void ServiceLoop::update_probe(Pass& pass, const ReplicaRecord& replica, const ObservedProgram& program,
                               workload::Replica& out, Ns now) {
  if (!pass.desired.has_port || program.state != ProgramState::running) return;
  Probed& probed = probes_[replica.slice];
  if (probed.attempt != program.attempt) {
    const bool is_adopted = probed.attempt == 0 && out.endpoint == EndpointState::serving;
    probed = {.attempt = program.attempt, .probe = {}, .foreign = {}};
    if (is_adopted) probed.probe.ready_since = std::max(program.started_at, now - workload::min_ready_ns);
  }
  if (const auto result = effects_.probe({replica.slice, replica.port}, pass.spec.readiness)) {
    probed.foreign = result->foreign;
    // What another program answers proves nothing, and no request may go there.
    if (!probed.foreign.empty())
      probed.probe = {};
    else
      probed.probe = result->is_success ? workload::probe_succeeded(probed.probe, now)
                                        : workload::probe_failed(probed.probe);
  }
  if (pass.problem.empty() && !probed.foreign.empty())
    pass.problem = fmt::format("replica {}: {}", replica.replica, probed.foreign);
  out.probe = probed.probe;
}

void ServiceLoop::carry_out(Pass& pass, const Action& action, Ns now) {
  using Kind = Action::Kind;
  if (action.kind == Kind::create_slice) return create(pass, action.replica, now);
  if (action.kind == Kind::complete) {
    pass.changed = true;
    pass.record.complete_revision = pass.desired.revision;
    done(pass, records_.write(pass.record));
    return;
  }
  const std::string slice = replica_name(*pass.object, action.replica.revision, action.replica.index);
  const auto found = std::ranges::find(pass.replicas, slice, &ReplicaRecord::slice);
  invariant(found != pass.replicas.end(), "an action names an observed replica");
  ReplicaRecord replica = *found;
  const bool asks_agent = action.kind == Kind::start || action.kind == Kind::end_slice;
  if (asks_agent && pass.silent_nodes.contains(replica.node)) return;  // Later turns do it.
  pass.changed = true;
  switch (action.kind) {
    case Kind::start: return start(pass, replica, now);
    case Kind::publish: served_[replica.uid][replica.slice] = replica.port; return;
    case Kind::withdraw: served_[replica.uid].erase(replica.slice); return;
    case Kind::retire:
      replica.retired_ns = now;
      done(pass, records_.write(replica));
      return;
    case Kind::terminate:
      if (!done(pass, effects_.terminate(replica.slice))) return;
      replica.terminated_ns = now;
      done(pass, records_.write(replica));
      return;
    case Kind::kill: done(pass, effects_.kill(replica.slice)); return;
    case Kind::end_slice: return end_slice(pass, replica);
    case Kind::create_slice:
    case Kind::complete: break;
  }
}

void ServiceLoop::create(Pass& pass, workload::ReplicaId id, Ns now) {
  pass.changed = true;
  ReplicaRecord replica{.slice = replica_name(*pass.object, id.revision, id.index),
                        .uid = pass.record.uid,
                        .revision = id.revision,
                        .replica = id.index};
  replica.request_id = fmt::format("{}-{}-{}-{}", replica.uid, id.revision, id.index, now);
  if (is_taken_ && is_taken_(replica.slice)) {
    const auto taken = failure(
        K::unavailable, "a program {} of a lost record is left; the replica is created when it has ended",
        replica.slice);
    return keep_problem(pass, taken.value());
  }
  if (pass.spec.port) {
    const auto port = effects_.free_port(Effects::PortUse::program, records_.program_ports());
    if (!done(pass, port)) return;
    replica.port = *port;
  }
  if (done(pass, records_.write(replica))) done(pass, keep_owner(*pass.object, replica));
}

// Returns whether a supervisor was asked to start the replica and has not begun yet. After some time it is
// asked again: the supervisors agree which of them begins.
bool ServiceLoop::is_starting(const ReplicaRecord& replica, const ObservedProgram& program, Ns now) const {
  constexpr Ns patience = 5 * workload::second_ns;
  const auto asked = asked_starts_.find(replica.slice);
  return asked != asked_starts_.end() && asked->second.attempt > program.attempt &&
         now < asked->second.at + patience;
}

void ServiceLoop::start(Pass& pass, const ReplicaRecord& known, Ns now) {
  ReplicaRecord replica = known;
  const ObservedProgram& program = pass.programs[replica.slice];
  if (program.state == ProgramState::exited && replica.attempt == program.attempt) {
    replica.failures =
        workload::failures_after(replica.failures, workload::between(program.started_at, program.ended_at));
    ++replica.restarts;
  }
  replica.attempt = program.attempt + 1;
  // Another program took the port, which nothing reserves in the kernel. A start that is repeated keeps it,
  // because the program may run already.
  if (replica.port != 0 && known.attempt < replica.attempt && !effects_.is_free(replica.port)) {
    const auto port = effects_.free_port(Effects::PortUse::program, records_.program_ports());
    if (!done(pass, port)) return;
    os::log::warning("{}: replica {} gets port {}, because another program uses port {}",
                     text(pass.object->key), replica.replica, *port, replica.port);
    replica.port = *port;
  }
  if (!done(pass, records_.write(replica))) return;
  const objects::ServiceSpec spec = stored_spec(records_.spec(replica.uid, replica.revision));
  if (!done(pass, effects_.start(program_start(*pass.object, spec, replica, replica.attempt)))) return;
  asked_starts_[replica.slice] = {.attempt = replica.attempt, .at = now};
  os::log::info("{}: replica {} of revision {} started, attempt {}", text(pass.object->key), replica.replica,
                replica.revision, replica.attempt);
}

void ServiceLoop::end_slice(Pass& pass, const ReplicaRecord& replica) {
  if (!replica.node.empty()) {
    done(pass, effects_.end_slice(replica.node, replica.slice));
    return;  // The next turns see when it has ended.
  }
  forget(pass, replica);
}

// Removes what is known of a replica whose slice has ended. Its port is free for another program then, so the
// endpoint does not serve it any more.
bool ServiceLoop::forget(Pass& pass, const ReplicaRecord& replica) {
  effects_.forget_program(replica.slice);
  probes_.erase(replica.slice);
  asked_starts_.erase(replica.slice);
  served_[replica.uid].erase(replica.slice);
  return done(pass, records_.remove(replica));
}

void ServiceLoop::write_status(Pass& pass, Ns now) {
  const auto refusal = refusals_.find(pass.record.uid);
  const ObjectKey& key = pass.object->key;
  if (pass.problem.empty() && pass.record.port != 0)
    pass.problem = effects_.endpoint_problem(key.namespace_, key.name);
  StatusInput input{.object = *pass.object,
                    .spec = pass.spec,
                    .record = pass.record,
                    .desired = pass.desired,
                    .observed = pass.observed,
                    .replicas = pass.replicas,
                    .programs = pass.programs,
                    .slices = pass.slices,
                    .refusal = refusal != refusals_.end() ? &refusal->second : nullptr,
                    .problem = pass.problem,
                    .resized = resized_[pass.record.uid],
                    .scaling = pass.scaling};
  WrittenStatus& last = written_statuses_[pass.record.uid];
  if (last.json != pass.object->status)
    last.status = api::read<objects::ServiceStatus>(pass.object->status, api::Reading::lenient)
                      .value_or(objects::ServiceStatus{});
  last.status = service_status(input, last.status, now);
  last.json = api::write(last.status);
  if (last.json == pass.object->status) return;
  const std::string& status = last.json;
  const auto written = objects_.update(pass.object->key, [&](Object& object) -> Outcome<void> {
    if (object.uid == pass.object->uid) object.status = status;
    return {};
  });
  if (!written && written.error().kind != K::not_found) os::log::error("{}", written.error().sentence);
}

void ServiceLoop::remove_if_ended(Pass& pass) {
  const std::string& uid = pass.record.uid;
  if (!pass.object->is_ending || !records_.replicas(uid).empty()) return;
  served_.erase(uid);
  if (!done(pass, objects_.remove(pass.object->key))) return;
  records_.forget(uid);
  refusals_.erase(uid);
  resized_.erase(uid);
  written_statuses_.erase(uid);
  scaler_.forget(uid);
  os::log::info("{}: deleted", text(pass.object->key));
  changed_ = true;
}

void ServiceLoop::publish_endpoints() {
  std::vector<ServiceEndpoint> wanted;
  for (const auto& object : objects_.workloads()) {
    const WorkloadRecord record = records_.workload(object->uid);
    if (record.port == 0) continue;
    ServiceEndpoint endpoint{
        .name_space = object->key.namespace_, .name = object->key.name, .port = record.port, .servers = {}};
    for (const auto& [slice, port] : served_[object->uid]) endpoint.servers.push_back({slice, port});
    wanted.push_back(std::move(endpoint));
  }
  if (const auto published = effects_.publish(wanted); !published)
    os::log::warning("{}", published.error().sentence);
  if (wanted != published_) changed_ = true;
  published_ = std::move(wanted);
}

}  // namespace carve::controller
