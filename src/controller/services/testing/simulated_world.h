// The world that outlives a controller of one service, for simulations: agents with their slices, programs
// with their attempts, the endpoint. Agents lose requests, answers, or time; each fault is drawn from one
// seed. The world keeps the first property that was broken.
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
  bool ends = false;  // Otherwise it requests the slice.
  ReplicaId id;
  std::string request;  // Its id.
};

struct SimulatedAgent {
  size_t capacity = 4;
  bool answers = true;
  bool is_drained = false;                  // It grants no slice, and its replicas move.
  std::map<ReplicaId, std::string> slices;  // With the granted request.
  std::set<std::string> granted;            // All requests, including those of ended slices.
  std::deque<SimulatedRequest> late;        // Received but not carried out.
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

  // Keeps the first broken property.
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

  // A supervisor begins an attempt once, in the replica's slice, if it gets the replica's lock.
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

  // Checks the invariants that always hold.
  void check() {
    std::set<ReplicaId> seen;
    for (const SimulatedAgent& agent : agents)
      for (const auto& [id, request] : agent.slices)
        require(seen.insert(id).second, "two slices of one replica", id);
    for (const auto& [id, program] : programs)
      if (program.state == ProgramState::running)
        require(seen.contains(id), "a program without its slice", id);
  }

  std::mt19937 dice;
  bool faults = true;
  Ns now = 1000 * second_ns;
  bool has_port = true;
  std::string violation;  // The first one; empty if none.

  std::vector<SimulatedAgent> agents{3};
  std::map<ReplicaId, SimulatedProgram> programs;
  std::vector<SimulatedSupervisor> late_supervisors;
  std::map<ReplicaId, EndpointState> endpoint;

 private:
  // An agent carries out requests in the order of their arrival. A request or its answer may be lost, and a
  // request may be delayed.
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
