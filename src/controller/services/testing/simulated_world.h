// The environment of a controller with one service, for simulations: agents with their slices, programs with
// their attempts, and the endpoint, all of which outlive the controller. Agents lose or delay requests and
// answers; all faults are drawn from one seed. The world records the first property that was violated.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "workload/service.h"

namespace carve::controller {

using workload::EndpointState;
using workload::Ns;
using workload::ProgramState;
using workload::ReplicaId;
using workload::second_ns;

struct SimulatedRequest {
  bool ends = false;  // Ends the slice; otherwise requests it.
  ReplicaId id;
  std::string request;  // Id of the request.
};

struct SimulatedAgent {
  size_t capacity = 4;
  bool answers = true;
  bool is_drained = false;                  // The node grants no slices, and its replicas move.
  std::map<ReplicaId, std::string> slices;  // Slices with their granted requests.
  std::set<std::string> granted;            // All granted requests, including those of ended slices.
  std::deque<SimulatedRequest> late;        // Requests received but not carried out.
};

struct SimulatedProgram {
  uint32_t attempt = 0;
  ProgramState state = ProgramState::not_started;
  Ns started_at = 0;
  Ns ended_at = 0;
};

struct SimulatedSupervisor {
  ReplicaId id;
  uint32_t attempt = 0;
};

enum class SimulatedAnswer : uint8_t { granted, refused, none };

class SimulatedWorld {
 public:
  explicit SimulatedWorld(unsigned seed) : dice(seed) { has_port = dice() % 4 != 0; }

  bool chance(unsigned one_in) { return faults && dice() % one_in == 0; }

  // Records the first violated property.
  void require(bool holds, const char* property, ReplicaId id) {
    if (!holds && violation.empty())
      violation = fmt::format("at {} s: {}: {}-{}", now / second_ns, property, id.revision, id.index);
  }

  SimulatedAnswer grant(size_t agent, ReplicaId id, const std::string& request) {
    return receive(agent, {.ends = false, .id = id, .request = request});
  }
  void end_slice(size_t agent, ReplicaId id) { receive(agent, {.ends = true, .id = id}); }

  // Returns whether the agent reports its slices.
  bool lists_slices(size_t agent) {
    if (!agents[agent].answers || chance(16)) return false;
    carry_out_late(agents[agent]);
    return true;
  }

  bool has_slice(ReplicaId id) const {
    return std::ranges::any_of(agents, [&](const auto& agent) { return agent.slices.contains(id); });
  }

  // Begins an attempt if it was not begun before, in the replica's slice, and if the supervisor gets the
  // replica's lock.
  void supervise(ReplicaId id, uint32_t attempt) {
    SimulatedProgram& program = programs[id];
    if (!has_slice(id) || program.attempt >= attempt || program.state == ProgramState::running) return;
    program = {.attempt = attempt, .state = ProgramState::running, .started_at = now, .ended_at = 0};
  }

  void end_program(ReplicaId id) {
    const auto found = programs.find(id);
    if (found == programs.end() || found->second.state != ProgramState::running) return;
    found->second.state = ProgramState::exited;
    found->second.ended_at = now;
  }

  bool answers_probe(ReplicaId id) const {
    const auto found = programs.find(id);
    return found != programs.end() && found->second.state == ProgramState::running &&
           now >= found->second.started_at + second_ns;
  }

  void take_slice(SimulatedAgent& agent, ReplicaId id) {
    if (agent.slices.erase(id) != 0) end_program(id);
  }

  void carry_out_late(SimulatedAgent& agent) {
    for (; !agent.late.empty(); agent.late.pop_front()) carry_out(agent, agent.late.front());
  }

  // Checks the invariants that must always hold.
  void check() {
    std::set<ReplicaId> seen;
    for (const SimulatedAgent& agent : agents)
      for (const auto& [id, request] : agent.slices)
        require(seen.insert(id).second, "one replica has two slices", id);
    for (const auto& [id, program] : programs)
      if (program.state == ProgramState::running)
        require(seen.contains(id), "a program runs without its slice", id);
  }

  std::mt19937 dice;
  bool faults = true;
  Ns now = 1000 * second_ns;
  bool has_port = true;
  std::string violation;  // The first violated property; empty if none.

  std::vector<SimulatedAgent> agents{3};
  std::map<ReplicaId, SimulatedProgram> programs;
  std::vector<SimulatedSupervisor> late_supervisors;
  std::map<ReplicaId, EndpointState> endpoint;

 private:
  // Receives a request. An agent carries out requests in the order of arrival. A request or its answer may be
  // lost, and a request may be delayed.
  SimulatedAnswer receive(size_t index, const SimulatedRequest& request) {
    SimulatedAgent& agent = agents[index];
    const bool is_lost = chance(8);
    if (!agent.answers || is_lost) {
      if (dice() % 2 == 0) agent.late.push_back(request);
      if (agent.answers && dice() % 2 == 0) carry_out_late(agent);
      return SimulatedAnswer::none;
    }
    carry_out_late(agent);
    return carry_out(agent, request);
  }

  SimulatedAnswer carry_out(SimulatedAgent& agent, const SimulatedRequest& request) {
    const ReplicaId id = request.id;
    if (request.ends) return take_slice(agent, id), SimulatedAnswer::granted;
    const auto living = agent.slices.find(id);
    if (living != agent.slices.end()) {
      require(living->second == request.request, "a second slice is requested for one replica", id);
      return living->second == request.request ? SimulatedAnswer::granted : SimulatedAnswer::refused;
    }
    if (agent.granted.contains(request.request) || agent.is_drained || agent.slices.size() >= agent.capacity)
      return SimulatedAnswer::refused;
    agent.granted.insert(request.request);
    agent.slices[id] = request.request;
    check();
    return SimulatedAnswer::granted;
  }
};

}  // namespace carve::controller
