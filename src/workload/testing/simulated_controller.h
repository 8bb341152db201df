// A controller of one service, for simulations: it takes the steps of controller/services over a
// SimulatedWorld, and may be killed between any two of them.
#pragma once

#include "workload/testing/simulated_world.h"

namespace carve::workload {

struct ControllerKilled {};

// One life of the controller, from its start to its kill.
class SimulatedController {
 public:
  explicit SimulatedController(SimulatedWorld& world) : world_(world) {}

  // Takes the steps of one turn. Throws ControllerKilled after `steps` of them; 0 for never.
  void turn(unsigned steps) {
    steps_left_ = steps;
    if (!is_adopted_)
      for (const auto& [id, record] : world_.records)
        if (record.is_granted && endpoint_state(id) == EndpointState::serving) served_.insert(id);
    is_adopted_ = true;
    revise();
    for (const ReplicaId& id : recorded()) request_slice(id);
    observe();
    const Service service = desired();
    for (const ServiceAction& action : actions(service, observed_, world_.now)) carry_out(action);
    publish();
  }

  Service desired() const {
    return {.name = "a",
            .revision = world_.revision,
            .replicas = world_.document.replicas,
            .has_port = world_.has_port,
            .rollout = world_.document.rollout,
            .grace = 5 * second_ns,
            .revised_at = world_.revised_at};
  }
  const ServiceObserved& observed() const { return observed_; }

 private:
  struct Probed {
    uint32_t attempt = 0;
    Probe probe;
  };
  struct AskedStart {
    uint32_t attempt = 0;
    Ns at = 0;
  };

  void step() {
    world_.check();
    if (steps_left_ != 0 && --steps_left_ == 0) throw ControllerKilled();
  }

  std::vector<ReplicaId> recorded() const {
    std::vector<ReplicaId> out;
    for (const auto& [id, record] : world_.records) out.push_back(id);
    return out;
  }

  EndpointState endpoint_state(ReplicaId id) const {
    const auto found = world_.endpoint.find(id);
    return found == world_.endpoint.end() ? EndpointState::absent : found->second;
  }

  void revise() {
    if (world_.revision != 0 && world_.present_spec == world_.document.spec) return;
    ++world_.revision;
    world_.present_spec = world_.document.spec;
    world_.revised_at = world_.now;
    refusal_.reset();
    step();
  }

  void request_slice(ReplicaId id) {
    SimulatedRecord& record = world_.records.at(id);
    if (record.is_granted) return;
    std::vector<size_t> agents;
    if (record.agent) agents.push_back(*record.agent);
    for (size_t i = 0; i < world_.agents.size() && !record.agent; ++i)
      if (world_.agents[i].answers && !world_.agents[i].is_drained) agents.push_back(i);
    if (agents.empty()) return;
    if (!record.agent) std::ranges::shuffle(agents, world_.dice);
    for (const size_t agent : agents) {
      record.agent = agent;
      step();
      const SimulatedAnswer answer = world_.grant(agent, id, record.request);
      step();
      if (answer == SimulatedAnswer::none) return;
      if (answer == SimulatedAnswer::refused) continue;
      record.is_granted = true;
      refusal_.reset();
      return step();
    }
    const bool again = refusal_ && refusal_->revision == id.revision;
    refusal_ = Refusal{.revision = id.revision, .at = world_.now, .times = again ? refusal_->times + 1 : 1};
    world_.records.erase(id);
    step();
  }

  void observe() {
    observed_ = {.replicas = {}, .refusal = {}, .complete_revision = world_.complete_revision};
    silent_.clear();
    for (size_t i = 0; i < world_.agents.size(); ++i)
      if (!world_.lists_slices(i)) silent_.insert(i);
    for (const ReplicaId& id : recorded())
      if (world_.records.at(id).is_granted)
        observe_replica(id);
      else
        observed_.requested.push_back(id);
    observed_.refusal = refusal_;
  }

  void observe_replica(ReplicaId id) {
    const SimulatedRecord& record = world_.records.at(id);
    const SimulatedProgram program = world_.programs[id];
    if (!silent_.contains(*record.agent) && !world_.agents[*record.agent].slices.contains(id))
      return forget(id);
    Replica out{
        .id = id,
        .program = program.state,
        .program_since = program.state == ProgramState::exited ? program.ended_at : program.started_at,
        .failures = record.failures,
        .probe = {},
        .endpoint = served_.contains(id) ? EndpointState::serving : endpoint_state(id),
        .retired_at = record.retired_at,
        .terminated_at = record.terminated_at,
        .must_move = world_.agents[*record.agent].is_drained};
    if (program.state == ProgramState::exited)
      out.failures = failures_after(record.failures, program.ended_at - program.started_at);
    if (program.state == ProgramState::running) out.probe = probed(id, program, out.endpoint);
    const auto asked = asked_.find(id);
    if (asked != asked_.end() && asked->second.attempt > program.attempt &&
        world_.now < asked->second.at + 5 * second_ns) {
      out.program = ProgramState::running;
      out.program_since = asked->second.at;
    }
    observed_.replicas.push_back(out);
  }

  Probe probed(ReplicaId id, const SimulatedProgram& program, EndpointState endpoint) {
    Probed& known = probes_[id];
    if (known.attempt != program.attempt) {
      const bool is_adopted = known.attempt == 0 && endpoint == EndpointState::serving;
      known = {.attempt = program.attempt, .probe = {}};
      if (is_adopted) known.probe.ready_since = std::max(program.started_at, world_.now - min_ready_ns);
    }
    known.probe =
        world_.answers_probe(id) ? probe_succeeded(known.probe, world_.now) : probe_failed(known.probe);
    return known.probe;
  }

  // The slice was ended, by the controller or by other means.
  void forget(ReplicaId id) {
    world_.programs.erase(id);
    step();
    probes_.erase(id);
    asked_.erase(id);
    refusal_.reset();
    served_.erase(id);
    world_.records.erase(id);
    step();
  }

  void carry_out(const ServiceAction& action) {
    if (action.kind == ServiceAction::Kind::create_slice) {
      world_.require(!world_.records.contains(action.replica), "a replica is created twice", action.replica);
      world_.records[action.replica] = {.request = ++world_.last_request};
      return step();
    }
    if (action.kind == ServiceAction::Kind::complete) {
      world_.complete_revision = action.replica.revision;
      return step();
    }
    SimulatedRecord& record = world_.records.at(action.replica);
    const bool asks_agent =
        action.kind == ServiceAction::Kind::start || action.kind == ServiceAction::Kind::end_slice;
    if (asks_agent && silent_.contains(*record.agent)) return;
    change(action, record);
    step();
  }

  void change(const ServiceAction& action, SimulatedRecord& record) {
    const ReplicaId id = action.replica;
    const bool ends = action.kind == ServiceAction::Kind::terminate ||
                      action.kind == ServiceAction::Kind::kill ||
                      action.kind == ServiceAction::Kind::end_slice;
    world_.require(!ends || record.retired_at, "a replica is ended that was not retired", id);
    switch (action.kind) {
      case ServiceAction::Kind::start: return start(id, record);
      case ServiceAction::Kind::publish:
        world_.require(world_.answers_probe(id), "a replica is published that is not ready", id);
        served_.insert(id);
        return;
      case ServiceAction::Kind::withdraw: served_.erase(id); return;
      case ServiceAction::Kind::retire:
        world_.require(!record.retired_at, "a replica is retired twice", id);
        world_.require(!gives_way(action) || !world_.has_port || !world_.answers_probe(id) || has_other(id),
                       "the only ready replica of an ordinal is superseded", id);
        record.retired_at = world_.now;
        return;
      case ServiceAction::Kind::terminate:
        if (world_.chance(2)) world_.end_program(id);  // Otherwise it ignores SIGTERM, or ends later.
        step();
        record.terminated_at = world_.now;
        return;
      case ServiceAction::Kind::kill: return world_.end_program(id);
      default:
        world_.require(world_.programs[id].state != ProgramState::running,
                       "a slice is ended under its program", id);
        return world_.end_slice(*record.agent, id);
    }
  }

  // Returns whether the replica is retired because another replica of its ordinal stays.
  static bool gives_way(const ServiceAction& action) {
    return action.reason == ServiceAction::Reason::superseded ||
           action.reason == ServiceAction::Reason::moved;
  }

  // Returns whether another replica of the ordinal runs and is not retired. A replica published by the last
  // controller counts as ready until its probes fail, so it may not answer yet.
  bool has_other(ReplicaId id) const {
    return std::ranges::any_of(world_.records, [&](const auto& entry) {
      const auto program = world_.programs.find(entry.first);
      return entry.first != id && ordinal(entry.first) == ordinal(id) && !entry.second.retired_at &&
             program != world_.programs.end() && program->second.state == ProgramState::running;
    });
  }

  void start(ReplicaId id, SimulatedRecord& record) {
    const SimulatedProgram& program = world_.programs[id];
    world_.require(program.state != ProgramState::running, "a program is started beside one that runs", id);
    if (program.state == ProgramState::exited && record.attempt == program.attempt)
      record.failures = failures_after(record.failures, program.ended_at - program.started_at);
    record.attempt = program.attempt + 1;
    step();
    if (world_.chance(4))
      world_.late_supervisors.push_back({id, record.attempt});
    else
      world_.supervise(id, record.attempt);
    asked_[id] = {.attempt = record.attempt, .at = world_.now};
  }

  void publish() {
    for (auto& [id, state] : world_.endpoint) {
      if (state != EndpointState::serving || served_.contains(id)) continue;
      const auto record = world_.records.find(id);
      world_.require(record == world_.records.end() || record->second.retired_at || !world_.answers_probe(id),
                     "a ready replica is withdrawn", id);
      state = EndpointState::draining;
    }
    for (const ReplicaId& id : served_) world_.endpoint[id] = EndpointState::serving;
    step();
  }

  SimulatedWorld& world_;
  unsigned steps_left_ = 0;
  ServiceObserved observed_;
  std::set<size_t> silent_;
  std::map<ReplicaId, Probed> probes_;
  std::map<ReplicaId, AskedStart> asked_;
  std::optional<Refusal> refusal_;
  std::set<ReplicaId> served_;
  bool is_adopted_ = false;
};

}  // namespace carve::workload
