// The machines that run one service, for tests of its decisions second by second.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "workload/service.h"

namespace carve::workload {

using Kind = ServiceAction::Kind;

// Returns a name such as "start 1-0", with the revision and the index.
inline std::string text(const ServiceAction& action) {
  constexpr const char* kinds[] = {"create",    "start", "publish", "withdraw", "retire",
                                   "terminate", "kill",  "end",     "complete", "finish"};
  const char* kind = kinds[static_cast<size_t>(action.kind)];
  if (action.kind == Kind::complete || action.kind == Kind::finish)
    return fmt::format("{} {}", kind, action.replica.revision);
  return fmt::format("{} {}-{}", kind, action.replica.revision, action.replica.index);
}

inline std::string text(const std::vector<ServiceAction>& list) {
  std::string out;
  for (const ServiceAction& action : list) out += (out.empty() ? "" : ", ") + text(action);
  return out;
}

// The machines of one service: slices, programs, an endpoint, and a limit of slices. A program's probe
// succeeds 1 s after its start, and it ends 1 s after SIGTERM; a drain takes 1 s.
struct Machines {
  ServiceObserved observed;
  size_t capacity = 1000;
  bool ignores_sigterm = false;
  std::map<ReplicaId, unsigned> starts;

  Replica* find(ReplicaId id) {
    for (Replica& replica : observed.replicas)
      if (replica.id == id) return &replica;
    return nullptr;
  }

  void exit(Replica& replica, Ns now, ProgramEnd end = ProgramEnd::failed) {
    replica.end = end;
    replica.failures = failures_after(replica.failures, now - replica.program_since);
    replica.program = ProgramState::exited;
    replica.program_since = now;
    replica.probe = {};
  }

  // Carries out one action, and checks that its subject allows it.
  void carry_out(const ServiceAction& action, Ns now) {
    if (action.kind == Kind::complete) {
      observed.complete_revision = action.replica.revision;
      return;
    }
    Replica* replica = find(action.replica);
    if (action.kind == Kind::create_slice) {
      ASSERT_EQ(replica, nullptr) << "slice granted twice: " << text(action);
      if (observed.replicas.size() >= capacity) {
        observed.refusal =
            Refusal{action.replica.revision, now, observed.refusal ? observed.refusal->times + 1 : 1};
      } else {
        observed.replicas.push_back({.id = action.replica, .program_since = now});
        observed.refusal.reset();
      }
      return;
    }
    ASSERT_NE(replica, nullptr) << "no such replica: " << text(action);
    change(*replica, action, now);
  }

  void change(Replica& replica, const ServiceAction& action, Ns now) {
    switch (action.kind) {
      case Kind::start:
        ASSERT_NE(replica.program, ProgramState::running) << "started twice: " << text(action);
        replica.program = ProgramState::running;
        replica.program_since = now;
        ++starts[replica.id];
        break;
      case Kind::publish: replica.endpoint = EndpointState::serving; break;
      case Kind::withdraw: replica.endpoint = EndpointState::draining; break;
      case Kind::retire:
        ASSERT_FALSE(replica.retired_at) << text(action);
        replica.retired_at = now;
        break;
      case Kind::terminate: replica.terminated_at = now; break;
      case Kind::kill: exit(replica, now); break;
      default:
        ASSERT_EQ(action.kind, Kind::end_slice);
        ASSERT_NE(replica.program, ProgramState::running) << "slice ended under its program";
        std::erase_if(observed.replicas, [&](const Replica& r) { return r.id == action.replica; });
        observed.refusal.reset();
    }
  }

  // Lets one second pass.
  void pass(Ns now) {
    for (Replica& replica : observed.replicas) {
      if (replica.endpoint == EndpointState::draining) replica.endpoint = EndpointState::absent;
      if (replica.program != ProgramState::running) continue;
      if (now >= replica.program_since + second_ns) replica.probe = probe_succeeded(replica.probe, now);
      if (replica.terminated_at && !ignores_sigterm) exit(replica, now);
    }
  }
};

inline Service web(unsigned replicas, uint32_t revision = 1) {
  Service service;
  service.name = "web";
  service.replicas = replicas;
  service.revision = revision;
  service.has_port = true;
  return service;
}

}  // namespace carve::workload
