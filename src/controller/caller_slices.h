// Finds out in which slice the process of a new connection runs. Only agents know the processes of their
// slices, so each agent of this machine is asked: GET /v1/processes/PID. The calls are made in the loop and
// none of them waits; the connection's first request is read when the last agent has answered, after 0.3 ms.
//
// An agent that has not answered for 1 s is silent. Callers do not wait for a silent agent, and one call at a
// time finds out whether it answers again. If an agent cannot answer, the path of the process's cgroup
// decides: agents make the cgroups of their slices, `carve-<hash>/NAME` (node/slice/cgroup.h). The reasons
// are in docs/decisions/0023-callers-inside-slices.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/caller.h"
#include "os/loop.h"

namespace carve::controller {

// Returns the name of the slice whose cgroup the lines of /proc/PID/cgroup show, or no value.
std::optional<std::string> slice_in_cgroups(const std::map<std::string, std::string>& cgroups);

class CallerSlices {
 public:
  using Then = std::function<void(http::Caller)>;

  CallerSlices(os::Loop&, const std::vector<std::string>& sockets);  // Of the agents.
  ~CallerSlices();
  CallerSlices(const CallerSlices&) = delete;
  CallerSlices& operator=(const CallerSlices&) = delete;

  // Calls `then` once in the loop, or before it returns, with the caller as it is: inside a slice, or in
  // none. The call is not made after the returned value is gone.
  std::shared_ptr<void> find(const http::Caller&, Then then);

 private:
  struct Agent {
    std::string socket;
    bool silent = false;
    size_t calls = 0;  // Under way.
  };
  struct Question;
  struct Call;
  // Returns whether the question has to wait for the agent.
  bool call(size_t agent, const std::shared_ptr<Question>&);
  void receive(int fd);
  void end(int fd, const std::optional<std::string>& slice);
  void end_late_calls();

  os::Loop& loop_;
  std::vector<Agent> agents_;
  std::map<int, std::unique_ptr<Call>> calls_;                        // By their sockets.
  std::shared_ptr<const int> lives_ = std::make_shared<const int>();  // The loop's timer looks at it.
};

}  // namespace carve::controller
