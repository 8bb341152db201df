// A simulated machine for tests of the service reconciler, with agents that grant slices up to a capacity,
// programs that run until they are stopped, and an endpoint. A node may be silent: its agent does not
// respond, but its programs keep running. Each call may be the last one before the controller is killed
// (`calls_left`). The last call takes effect if `last_has_effect` is set, and throws Killed.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "controller/services/effects.h"

namespace carve::controller {

struct Killed {};

struct EffectsFake final : Effects {
  struct Program {
    ObservedProgram seen;
    unsigned starts = 0;  // Starts of this attempt. More than one is a bug in the reconciler.
  };
  Ns now = 0;
  unsigned capacity = 1000;      // Number of slices.
  std::string device = "GPU-1";  // Device of each slice.
  std::vector<std::string> nodes{"n1"};
  std::set<std::string> silent_nodes;  // Nodes whose agents do not respond.
  bool loses_answers = false;          // A slice is granted, but the response is lost.
  int calls_left = -1;                 // Calls before the kill; negative for no kill.
  bool last_has_effect = true;
  bool refuses_resize = false;
  bool fits_nowhere = false;                      // If set, no trial placement finds room.
  std::map<std::string, ObservedSlice> live;      // Keyed by name.
  std::map<std::string, std::string> node_of;     // Keyed by slice name.
  std::map<std::string, std::string> granted_by;  // Name by request id, including ended slices.
  std::map<std::string, Program> programs;        // Keyed by slice.
  std::map<std::string, workload::EndpointState> servers;
  std::optional<EndpointLoad> carried;  // Load of each endpoint.
  std::string taken_port;               // Why no endpoint can be set up; empty if it can.
  std::string broken_proxy;             // Why publish() fails; empty if it succeeds.
  std::set<uint32_t> open_ports;        // Ports whose probes succeed.
  std::set<uint32_t> foreign_ports;     // Ports on which other programs listen.
  std::map<std::string, uint32_t> port_of;
  std::set<std::string> started_twice, granted_twice;
  std::string refuses_start;  // Why no program can be started; empty if it can.
  // If `delays_programs` is set, started programs are not executed before execute_all(). If `begins` is set,
  // they count as begun; until then SIGTERM has no effect on them.
  bool delays_programs = false, begins = false;
  std::map<std::string, ObservedProgram> delayed;  // Keyed by slice.
  unsigned secrets = 0;
  std::map<std::string, ProgramOwner> kept_owners;  // Keyed by program.
  unsigned read_owners = 0;
  std::map<std::string, ProgramStart> starts;  // Last start of each program.

  // Runs the call if it is to take effect. If it is the last call, throws afterwards.
  template <class Act>
  void call(Act act) {
    const bool is_last = calls_left == 0;
    if (calls_left > 0) --calls_left;
    if (!is_last || last_has_effect) act();
    if (is_last) throw Killed();
  }

  Outcome<std::vector<std::string>> nodes_to_ask(const NodeChoice&, const Amounts&) override { return nodes; }
  Outcome<void> check_room(const RoomQuery& query) override {
    if (live.size() < capacity + query.ended.size() && !fits_nowhere) return {};
    return failure(FailureKind::insufficient_capacity, "no device has the capacity");
  }
  Outcome<void> grant(const api::SliceRequest& request, const std::string& node) override {
    if (silent_nodes.contains(node)) return failure(FailureKind::unavailable, "node {} is silent", node);
    Outcome<void> out;
    if (loses_answers) out = failure(FailureKind::unavailable, "the answer was lost");
    call([&] {
      if (granted_by.contains(request.request_id)) return;
      if (live.size() >= capacity) {
        out = failure(FailureKind::insufficient_capacity, "no device has the capacity");
        return;
      }
      if (live.contains(request.name)) granted_twice.insert(request.name);
      granted_by[request.request_id] = request.name;
      live[request.name] = {
          .parts = {{.device = device,
                     .memory_bytes = request.amounts.memory_bytes.value_or(0),
                     .share_bp = request.amounts.share_bp.value_or(0)}},
          .memory_bytes = request.amounts.memory_bytes.value_or(0),
          .share_bp = request.amounts.share_bp.value_or(0),
          .workload = request.labels.contains("carve.dev/name") ? request.labels.at("carve.dev/name") : ""};
      node_of[request.name] = node;
    });
    return out;
  }
  Outcome<std::map<std::string, ObservedSlice>> slices(const std::string& node) override {
    if (silent_nodes.contains(node)) return failure(FailureKind::unavailable, "node {} is silent", node);
    std::map<std::string, ObservedSlice> out;
    for (const auto& [name, slice] : live)
      if (node_of[name] == node) out[name] = slice;
    return out;
  }
  Outcome<void> resize(const std::string&, const std::string& slice,
                       const api::SliceChange& change) override {
    if (refuses_resize) return failure(FailureKind::insufficient_capacity, "the device has 1 GiB free");
    call([&] { live[slice].memory_bytes = change.memory_bytes.value_or(0); });
    return {};
  }
  Outcome<void> end_slice(const std::string& node, const std::string& slice) override {
    if (silent_nodes.contains(node)) return failure(FailureKind::unavailable, "node {} is silent", node);
    call([&] {
      live.erase(slice);
      if (const auto p = programs.find(slice); p != programs.end()) end_program(slice, 137);
    });
    return {};
  }
  Outcome<ObservedProgram> program(const std::string& slice) override {
    const auto found = programs.find(slice);
    return found == programs.end() ? ObservedProgram{} : found->second.seen;
  }
  Outcome<void> start(const ProgramStart& start) override {
    if (!refuses_start.empty()) return failure(FailureKind::failed_precondition, "{}", refuses_start);
    call([&] {
      Program& p = programs[start.slice];
      if (p.seen.attempt >= start.attempt) return;  // Like carve-supervise.
      if (p.seen.state == workload::ProgramState::running) started_twice.insert(start.slice);
      const ObservedProgram executed{
          .state = workload::ProgramState::running, .attempt = start.attempt, .started_at = now};
      if (delays_programs) delayed[start.slice] = executed;
      if (!delays_programs || begins) p.seen = executed;
      p.seen.is_waiting = delays_programs && begins;
      starts[start.slice] = start;
      if (const auto port = start.env.find("PORT"); port != start.env.end())
        open_ports.insert(static_cast<uint32_t>(std::stoul(port->second)));
    });
    return {};
  }
  Outcome<void> terminate(const std::string& slice) override {
    call([&] {
      if (!delayed.contains(slice)) end_program(slice, 0);
    });
    return {};
  }
  Outcome<void> kill(const std::string& slice) override {
    call([&] { end_program(slice, 137); });
    return {};
  }
  void forget_program(const std::string& slice) override {
    call([&] { programs.erase(slice), kept_owners.erase(slice); });
  }
  Outcome<void> keep_owner(const std::string& program, const ProgramOwner& owner) override {
    call([&] { kept_owners[program] = owner; });
    return {};
  }
  std::set<std::string> kept_programs() override {
    std::set<std::string> out;
    for (const auto& [name, owner] : kept_owners) out.insert(name);
    for (const auto& [name, program] : programs) out.insert(name);
    return out;
  }
  ProgramOwner owner(const std::string& program) override {
    ++read_owners;
    const auto found = kept_owners.find(program);
    return found != kept_owners.end() ? found->second : ProgramOwner{};
  }
  Outcome<uint32_t> free_port(PortUse use, const std::vector<uint32_t>& used) override {
    uint32_t port = use == PortUse::endpoint ? 18000 : 20000;
    while (std::ranges::find(used, port) != used.end() || foreign_ports.contains(port)) ++port;
    return port;
  }
  std::string new_secret() override { return fmt::format("secret-{}", ++secrets); }
  bool is_free(uint32_t port) override { return !foreign_ports.contains(port); }
  std::optional<ProbeResult> probe(const EndpointServer& server, const objects::Readiness&) override {
    if (foreign_ports.contains(server.port))
      return ProbeResult{.is_success = false,
                         .foreign = fmt::format("port {} is used by another program", server.port)};
    return ProbeResult{.is_success = open_ports.contains(server.port), .foreign = ""};
  }
  Outcome<void> publish(const std::vector<ServiceEndpoint>& endpoints) override {
    call([&] {
      servers.clear();
      for (const ServiceEndpoint& endpoint : endpoints)
        for (const EndpointServer& server : endpoint.servers)
          servers[server.slice] = workload::EndpointState::serving;
    });
    if (!broken_proxy.empty()) return failure(FailureKind::unavailable, "{}", broken_proxy);
    return {};
  }
  Outcome<std::map<std::string, workload::EndpointState>> endpoint_states() override { return servers; }
  std::string endpoint_problem(const std::string&, const std::string&) const override { return taken_port; }
  std::optional<EndpointLoad> load(const std::string&, const std::string&) override { return carried; }

  void execute_all() {
    for (const auto& [slice, executed] : delayed) programs[slice].seen = executed;
    delayed.clear();
  }
  void end_program(const std::string& slice, uint32_t status) {
    const auto found = programs.find(slice);
    if (found == programs.end() || found->second.seen.state != workload::ProgramState::running) return;
    found->second.seen.state = workload::ProgramState::exited;
    found->second.seen.ended_at = now;
    found->second.seen.exit = fmt::format("exit status {}", status);
    found->second.seen.exit_status = status;
  }
};

}  // namespace carve::controller
