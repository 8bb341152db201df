// Reads the agent's state every second and runs the jobs that change it, in a thread of its own.
#pragma once

#include <functional>
#include <string>

#include "kubernetes/node/agent_api.h"
#include "os/worker.h"

namespace carve::kubernetes::node {

class AgentWorker {
 public:
  using Job = std::function<void(AgentApi&)>;
  // `reported` is called in the worker's thread with each report, or with a message if the report cannot be
  // read.
  AgentWorker(AgentApi& agent, std::function<void(Result<api::AgentReport, std::string>)> reported)
      : agent_(agent), reported_(std::move(reported)), worker_({.turn = [this] { return turn(); }}) {}

  // Runs the job soon and reads the state afterwards.
  void run(Job job);
  void poll() { worker_.wake(); }

 private:
  int64_t turn();

  AgentApi& agent_;
  const std::function<void(Result<api::AgentReport, std::string>)> reported_;
  os::Worker worker_;  // Declared last, because it uses the other members.
};

}  // namespace carve::kubernetes::node
