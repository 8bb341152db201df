// The effects and journals of a service reconciler for one service in a SimulatedWorld. Each call is a step,
// after which the controller may be killed. The next controller finds the written records and the completed
// effects.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controller/objects/journaled_registry.h"
#include "controller/services/effects.h"
#include "controller/services/testing/simulated_world.h"
#include "controller/store/workload_journal.h"

namespace carve::controller {

struct ControllerKilled {};

class SimulatedMachine final : public Effects, public Journal, public WorkloadJournal {
 public:
  explicit SimulatedMachine(SimulatedWorld& world) : world_(world) {}

  // Kills the controller after `steps` steps, or never if `steps` is 0.
  void limit_steps(unsigned steps) { steps_left_ = steps; }

  // The contents of controller.db.
  std::map<ObjectKey, Object> objects;
  std::map<std::string, WorkloadRecord> workloads;                       // Keyed by uid.
  std::map<std::pair<std::string, uint32_t>, RevisionRecord> revisions;  // Keyed by uid and number.
  std::map<ReplicaId, ReplicaRecord> replicas;

  static std::string node_name(size_t agent) { return fmt::format("n{}", agent); }
  static std::string slice_name(ReplicaId id) { return fmt::format("a-{}-{}", id.revision, id.index); }
  static ReplicaId id_of(const std::string& slice) {
    const size_t second = slice.rfind('-');
    return {static_cast<uint32_t>(std::stoul(slice.substr(2, second - 2))),
            static_cast<uint32_t>(std::stoul(slice.substr(second + 1)))};
  }

  // Functions of Journal.
  Outcome<void> write(std::span<const Object> written) override {
    for (const Object& object : written) objects[object.key] = object;
    step();
    return {};
  }
  Outcome<void> remove(const ObjectKey& key, uint64_t) override {
    objects.erase(key);
    step();
    return {};
  }

  // Functions of WorkloadJournal.
  Outcome<void> write(const WorkloadRecord& record, const RevisionRecord& revision, unsigned kept) override {
    workloads[record.uid] = record;
    revisions[{revision.uid, revision.revision}] = revision;
    std::set<uint32_t> used;
    for (const auto& [id, replica] : replicas) used.insert(id.revision);
    size_t older = revisions.size();
    for (auto it = revisions.begin(); it != revisions.end() && older > kept; --older)
      it = used.contains(it->first.second) ? std::next(it) : revisions.erase(it);
    step();
    return {};
  }
  Outcome<void> write(const WorkloadRecord& record) override {
    workloads[record.uid] = record;
    step();
    return {};
  }
  Outcome<void> write(const ReplicaRecord& record) override {
    const ReplicaId id{record.revision, record.replica};
    const auto before = replicas.find(id);
    if (before != replicas.end()) check_change(id, before->second, record);
    replicas[id] = record;
    step();
    return {};
  }
  Outcome<void> remove(const ReplicaRecord& record) override {
    replicas.erase({record.revision, record.replica});
    step();
    return {};
  }

  // Functions of Effects.
  Outcome<std::vector<std::string>> nodes_to_ask(const NodeChoice&, const Amounts&) override {
    std::vector<std::string> out;
    for (size_t i = 0; i < world_.agents.size(); ++i)
      if (world_.agents[i].answers && !world_.agents[i].is_drained) out.push_back(node_name(i));
    if (out.empty()) return failure(FailureKind::unavailable, "no node answers");
    std::ranges::shuffle(out, world_.dice);
    return out;
  }
  Outcome<void> check_room(const RoomQuery&) override { return {}; }
  Outcome<void> grant(const api::SliceRequest& request, const std::string& node) override {
    const SimulatedAnswer answer = world_.grant(agent_of(node), id_of(request.name), request.request_id);
    step();
    if (answer == SimulatedAnswer::none) return failure(FailureKind::unavailable, "no answer");
    if (answer == SimulatedAnswer::refused) return failure(FailureKind::insufficient_capacity, "no room");
    return {};
  }
  Outcome<std::map<std::string, ObservedSlice>> slices(const std::string& node) override {
    if (!world_.lists_slices(agent_of(node))) return failure(FailureKind::unavailable, "no answer");
    std::map<std::string, ObservedSlice> out;
    for (const auto& [id, request] : world_.agents[agent_of(node)].slices) out[slice_name(id)] = {};
    return out;
  }
  Outcome<void> resize(const std::string&, const std::string&, const api::SliceChange&) override {
    return failure(FailureKind::insufficient_capacity, "no room");
  }
  Outcome<void> end_slice(const std::string& node, const std::string& slice) override {
    const ReplicaId id = id_of(slice);
    require_retired(id);
    world_.require(world_.programs[id].state != ProgramState::running,
                   "a slice is ended while its program runs", id);
    world_.end_slice(agent_of(node), id);
    step();
    return {};
  }
  Outcome<ObservedProgram> program(const std::string& slice) override {
    const auto found = world_.programs.find(id_of(slice));
    if (found == world_.programs.end()) return ObservedProgram{};
    const SimulatedProgram& program = found->second;
    ObservedProgram out{.state = program.state,
                        .attempt = program.attempt,
                        .started_at = program.started_at,
                        .ended_at = program.ended_at};
    if (program.state == ProgramState::exited) out.exit = "exit status 1", out.exit_status = 1;
    return out;
  }
  Outcome<void> start(const ProgramStart& start) override {
    const ReplicaId id = id_of(start.slice);
    world_.require(world_.programs[id].state != ProgramState::running,
                   "a program is started while another one runs", id);
    if (world_.chance(4))
      world_.late_supervisors.push_back({id, start.attempt});
    else
      world_.supervise(id, start.attempt);
    step();
    return {};
  }
  Outcome<void> terminate(const std::string& slice) override {
    require_retired(id_of(slice));
    if (world_.chance(2))
      world_.end_program(id_of(slice));  // Otherwise the program ignores SIGTERM or ends later.
    step();
    return {};
  }
  Outcome<void> kill(const std::string& slice) override {
    if (world_.has_slice(id_of(slice))) require_retired(id_of(slice));
    world_.end_program(id_of(slice));
    step();
    return {};
  }
  void forget_program(const std::string& slice) override {
    world_.programs.erase(id_of(slice));
    step();
  }
  Outcome<void> keep_owner(const std::string&, const ProgramOwner&) override {
    step();
    return {};
  }
  std::set<std::string> kept_programs() override { return {}; }
  ProgramOwner owner(const std::string&) override { return {}; }
  Outcome<uint32_t> free_port(PortUse use, const std::vector<uint32_t>& used) override {
    uint32_t port = use == PortUse::endpoint ? 18'000 : 20'000;
    while (std::ranges::find(used, port) != used.end()) ++port;
    return port;
  }
  bool is_free(uint32_t) override { return true; }
  std::string new_secret() override { return ""; }
  std::optional<ProbeResult> probe(const EndpointServer& server, const objects::Readiness&) override {
    return ProbeResult{.is_success = world_.answers_probe(id_of(server.slice)), .foreign = ""};
  }
  Outcome<void> publish(const std::vector<ServiceEndpoint>& endpoints) override {
    std::set<ReplicaId> served;
    for (const ServiceEndpoint& endpoint : endpoints)
      for (const EndpointServer& server : endpoint.servers) served.insert(id_of(server.slice));
    for (auto& [id, state] : world_.endpoint) {
      if (state != EndpointState::serving || served.contains(id)) continue;
      const auto record = replicas.find(id);
      world_.require(record == replicas.end() || record->second.retired_ns != 0 || !world_.answers_probe(id),
                     "a ready replica is withdrawn", id);
      state = EndpointState::draining;
    }
    for (const ReplicaId& id : served) {
      EndpointState& state = world_.endpoint[id];
      world_.require(state == EndpointState::serving || world_.answers_probe(id),
                     "a replica that is not ready is published", id);
      state = EndpointState::serving;
    }
    step();
    return {};
  }
  std::string endpoint_problem(const std::string&, const std::string&) const override { return ""; }
  Outcome<std::map<std::string, EndpointState>> endpoint_states() override {
    std::map<std::string, EndpointState> out;
    for (const auto& [id, state] : world_.endpoint) out[slice_name(id)] = state;
    return out;
  }
  std::optional<EndpointLoad> load(const std::string&, const std::string&) override { return {}; }

 private:
  void step() {
    world_.check();
    if (steps_left_ != 0 && --steps_left_ == 0) throw ControllerKilled();
  }

  static size_t agent_of(const std::string& node) { return std::stoul(node.substr(1)); }

  void require_retired(ReplicaId id) {
    const auto record = replicas.find(id);
    world_.require(record != replicas.end() && record->second.retired_ns != 0,
                   "a replica that was not retired is ended", id);
  }

  // Checks a change of a replica's record.
  void check_change(ReplicaId id, const ReplicaRecord& before, const ReplicaRecord& after) {
    world_.require(before.request_id == after.request_id, "a replica is created twice", id);
    if (before.retired_ns == after.retired_ns) return;
    world_.require(before.retired_ns == 0, "a replica is retired twice", id);
    world_.require(!gives_way(id) || !world_.has_port || !world_.answers_probe(id) || has_other(id),
                   "the only ready replica of an ordinal is superseded", id);
  }

  // Returns whether a replica is retired in favour of another replica with its ordinal, which is in the
  // document. A replica of the current revision may be retired for no other reason. A replica of an old
  // revision may also be retired because the rollout allows it, but then no other replica of an old revision
  // is left.
  bool gives_way(ReplicaId id) const {
    for (const auto& [key, object] : objects) {
      if (key.kind != objects::Kind::service) continue;
      const auto spec = object.spec.as<objects::ServiceSpec>();
      if (object.is_ending || spec.stopped || workload::ordinal(id) >= spec.replicas) return false;
      const uint32_t current = workloads.at(object.uid).revision;
      return id.revision == current || std::ranges::any_of(replicas, [&](const auto& entry) {
               return entry.first != id && entry.first.revision != current && entry.second.is_granted &&
                      workload::ordinal(entry.first) == workload::ordinal(id) && entry.second.retired_ns == 0;
             });
    }
    return false;
  }

  // Returns whether another replica with the ordinal runs and is not retired. A replica that the previous
  // controller published counts as ready until its probes fail, so it may not answer yet.
  bool has_other(ReplicaId id) const {
    return std::ranges::any_of(replicas, [&](const auto& entry) {
      const auto program = world_.programs.find(entry.first);
      return entry.first != id && workload::ordinal(entry.first) == workload::ordinal(id) &&
             entry.second.retired_ns == 0 && program != world_.programs.end() &&
             program->second.state == ProgramState::running;
    });
  }

  SimulatedWorld& world_;
  unsigned steps_left_ = 0;
};

}  // namespace carve::controller
