// A machine for tests of the service loop: agents that grant slices up to a capacity, programs that run until
// they are told to end, an endpoint. A node may be silent: its agent answers nothing, and its programs run
// on. Each call may be the last one before the controller is killed (`calls_left`): then it has its effect or
// not, by `last_has_effect`, and throws Killed.
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
    unsigned starts = 0;  // Of this attempt; more than one is an error of the loop.
  };
  Ns now = 0;
  unsigned capacity = 1000;  // Slices.
  std::vector<std::string> nodes{"n1"};
  std::set<std::string> silent_nodes;  // They grant nothing.
  bool loses_answers = false;          // A slice is granted and the answer is lost.
  int calls_left = -1;                 // Before the kill; negative: it is not killed.
  bool last_has_effect = true;
  bool refuses_resize = false;
  std::map<std::string, ObservedSlice> live;      // By name.
  std::map<std::string, std::string> node_of;     // By slice name.
  std::map<std::string, std::string> granted_by;  // Name by request id, also of ended slices.
  std::map<std::string, Program> programs;        // By slice.
  std::map<std::string, workload::EndpointState> servers;
  std::optional<EndpointLoad> carried;  // Of each endpoint.
  std::string taken_port;               // Why no endpoint is carried.
  std::set<uint32_t> open_ports;        // Whose probes succeed.
  std::set<uint32_t> foreign_ports;     // At which programs that are not the machine's listen.
  std::map<std::string, uint32_t> port_of;
  std::set<std::string> started_twice, granted_twice;
  std::string refuses_start;  // Why no program is started.
  unsigned secrets = 0;
  std::map<std::string, ProgramOwner> kept_owners;  // By program.
  std::map<std::string, ProgramStart> starts;       // The last one, by program.

  // Returns whether the call has its effect; throws after it if it is the last one.
  template <class Act>
  void call(Act act) {
    const bool is_last = calls_left == 0;
    if (calls_left > 0) --calls_left;
    if (!is_last || last_has_effect) act();
    if (is_last) throw Killed();
  }

  Outcome<std::vector<std::string>> nodes_to_ask(const NodeChoice&, const api::SliceRequest&) override {
    return nodes;
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
          .devices = {"GPU-1"},
          .memory_bytes = request.memory_bytes.value_or(0),
          .share_bp = request.share_bp.value_or(0),
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
      if (p.seen.attempt >= start.attempt) return;  // As carve-supervise does.
      if (p.seen.state == workload::ProgramState::running) started_twice.insert(start.slice);
      p.seen = {.state = workload::ProgramState::running, .attempt = start.attempt, .started_at = now};
      starts[start.slice] = start;
      if (const auto port = start.env.find("PORT"); port != start.env.end())
        open_ports.insert(static_cast<uint32_t>(std::stoul(port->second)));
    });
    return {};
  }
  Outcome<void> terminate(const std::string& slice) override {
    call([&] { end_program(slice, 0); });
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
  std::map<std::string, ProgramOwner> owners() override {
    auto out = kept_owners;
    for (const auto& [name, program] : programs) out.try_emplace(name);
    return out;
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
    return {};
  }
  Outcome<std::map<std::string, workload::EndpointState>> endpoint_states() override { return servers; }
  std::string endpoint_problem(const std::string&, const std::string&) const override { return taken_port; }
  std::optional<EndpointLoad> load(const std::string&, const std::string&) override { return carried; }

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
