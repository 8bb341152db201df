// Determines the slice in which the process of a new connection runs. Only agents know the processes of their
// slices, so the controller queries each agent of this machine: GET /v1/processes/PID, over a persistent
// connection. The calls run on the loop without blocking. The connection's first request is read when the
// last agent has responded, which takes about 0.05 ms.
//
// An agent that has not responded for 1 s counts as silent until it responds or closes the connection.
// Callers do not wait for a silent agent. If an agent cannot respond, the path of the process's cgroup is
// used instead: agents name the cgroups of their slices `carve-<hash>/NAME` (node/identity/cgroup.h). The
// reasons are in docs/decisions/0023-callers-inside-slices.md.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/kept_connection.h"
#include "http/caller.h"
#include "os/loop.h"

namespace carve::controller {

// Returns the name of the slice whose cgroup is in the lines of /proc/PID/cgroup, or no value.
std::optional<std::string> slice_in_cgroups(const std::map<std::string, std::string>& cgroups);

class CallerSlices {
 public:
  using Then = std::function<void(http::Caller)>;

  CallerSlices(os::Loop&, const std::vector<std::string>& sockets);  // `sockets` lists the agents' sockets.
  CallerSlices(const CallerSlices&) = delete;
  CallerSlices& operator=(const CallerSlices&) = delete;

  // Calls `then` once, on the loop or before this function returns, with the caller marked as inside its
  // slice or in none. No call is made after the returned value is destroyed.
  std::shared_ptr<void> find(const http::Caller&, Then then);

 private:
  struct Question;
  struct Agent {
    Agent(os::Loop& loop, const std::string& socket) : connection(loop, socket) {}
    KeptConnection connection;
    bool was_silent = false;  // The agent was silent, and this was logged.
  };
  // Returns whether the lookup has to wait for the agent.
  bool ask(Agent&, const std::shared_ptr<Question>&);
  void look_for_silent_agents();

  os::Loop& loop_;
  std::deque<Agent> agents_;
  bool is_looking_ = false;                                           // A timer is running.
  std::shared_ptr<const int> lives_ = std::make_shared<const int>();  // Expires with this object.
};

}  // namespace carve::controller
