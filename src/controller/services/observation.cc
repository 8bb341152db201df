// The part of the service reconciler that observes the replicas of a service: their slices, programs and
// probes.
#include <algorithm>

#include "controller/services/service_reconciler.h"

namespace carve::controller {
namespace {

using workload::EndpointState;
using workload::ProgramState;

workload::ProgramEnd end_of(const ObservedProgram& program) {
  if (program.is_lost) return workload::ProgramEnd::lost;
  return program.exit_status == 0 ? workload::ProgramEnd::succeeded : workload::ProgramEnd::failed;
}

}  // namespace

void ServiceReconciler::observe_slices(Turn& turn) {
  std::set<std::string> nodes;
  for (const ReplicaRecord& replica : records_.replicas(turn.record.uid))
    if (replica.is_granted && !replica.node.empty() && !replica.has_ended()) nodes.insert(replica.node);
  for (const std::string& node : nodes) {
    auto slices = effects_.slices(node);
    if (done(turn, slices))
      turn.slices.merge(*slices);
    else
      turn.silent_nodes.insert(node);
  }
}

bool ServiceReconciler::observe(Turn& turn, Ns now) {
  turn.observed.complete_revision = turn.record.complete_revision;
  observe_slices(turn);
  for (const ReplicaRecord& replica : records_.replicas(turn.record.uid))
    if (replica.has_ended())
      turn.ended_replicas.push_back(replica);
    else if (!replica.is_granted)
      turn.observed.requested.push_back({replica.revision, replica.replica});
    else if (!observe_replica(turn, replica, now))
      return false;
  if (const auto refusal = refusals_.find(turn.record.uid); refusal != refusals_.end())
    turn.observed.refusal = refusal->second.refusal;
  return true;
}

bool ServiceReconciler::observe_replica(Turn& turn, const ReplicaRecord& replica, Ns now) {
  const auto program = effects_.program(replica.slice);
  if (!done(turn, program)) return false;
  turn.programs[replica.slice] = *program;
  // A slice outlives its agent, so the slices of a node that does not respond count as live.
  if (!replica.node.empty() && !turn.slices.contains(replica.slice) &&
      !turn.silent_nodes.contains(replica.node)) {
    // The slice was ended by the reconciler or by a user, and its program ended with it.
    if (program->state == ProgramState::running) return done(turn, effects_.kill(replica.slice));
    refusals_.erase(replica.uid);
    turn.changed = true;
    return forget(turn, replica);
  }
  workload::Replica out{
      .id = {replica.revision, replica.replica},
      .program = program->state,
      .program_since = program->state == ProgramState::exited ? program->ended_at : program->started_at,
      .end = end_of(*program),
      .failures = replica.failures};
  if (program->state == ProgramState::exited)
    out.failures =
        workload::failures_after(replica.failures, workload::between(program->started_at, program->ended_at));
  // The running time begins when the program is executed, so a program without a port is not ready earlier.
  if (program->is_waiting) out.program_since = now;
  out.is_starting = program->is_waiting;
  if (is_starting(replica, *program, now)) {
    out.program = ProgramState::running;
    out.program_since = now;
    out.probe = {};
    out.is_starting = true;
  }
  if (replica.retired_ns != 0) out.retired_at = std::min(replica.retired_ns, now);
  if (replica.terminated_ns != 0) out.terminated_at = std::min(replica.terminated_ns, now);
  out.must_move = drained_nodes_.contains(replica.node);
  const auto state = endpoint_states_.find(replica.slice);
  if (state != endpoint_states_.end()) out.endpoint = state->second;
  if (served_[replica.uid].contains(replica.slice)) out.endpoint = EndpointState::serving;
  update_probe(turn, replica, *program, out, now);
  turn.observed.replicas.push_back(out);
  turn.replicas.push_back(replica);
  return true;
}

// Returns whether a supervisor was started for the replica and has not begun yet. After some time another one
// is started; the supervisors ensure that only one of them begins.
bool ServiceReconciler::is_starting(const ReplicaRecord& replica, const ObservedProgram& program,
                                    Ns now) const {
  constexpr Ns patience = 5 * workload::second_ns;
  const auto asked = asked_starts_.find(replica.slice);
  return asked != asked_starts_.end() && asked->second.attempt > program.attempt &&
         now < asked->second.at + patience;
}

void ServiceReconciler::update_probe(Turn& turn, const ReplicaRecord& replica, const ObservedProgram& program,
                                     workload::Replica& out, Ns now) {
  if (!turn.desired.has_port || program.state != ProgramState::running) return;
  Probed& probed = probes_[replica.slice];
  if (probed.attempt != program.attempt) {
    const bool is_adopted = probed.attempt == 0 && out.endpoint == EndpointState::serving;
    probed = {.attempt = program.attempt, .probe = {}, .foreign = {}};
    if (is_adopted) probed.probe.ready_since = std::max(program.started_at, now - workload::min_ready_ns);
  }
  if (program.is_ending) {
    // The port is free for every program, so it must not get requests.
    probed.probe = out.probe = {};
    return;
  }
  if (const auto result = effects_.probe({replica.slice, replica.port}, turn.spec.readiness)) {
    probed.foreign = result->foreign;
    // Another program's answer does not make the replica ready, and that program must not get requests.
    if (!probed.foreign.empty())
      probed.probe = {};
    else
      probed.probe = result->is_success ? workload::probe_succeeded(probed.probe, now)
                                        : workload::probe_failed(probed.probe);
  }
  if (turn.problem.empty() && !probed.foreign.empty())
    turn.problem = fmt::format("replica {}: {}", replica.replica, probed.foreign);
  out.probe = probed.probe;
}

}  // namespace carve::controller
