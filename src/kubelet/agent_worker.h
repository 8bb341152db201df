// The agent's state, read each second, and the jobs that change it, in a thread of their own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kubelet/agent_link.h"
#include "kubelet/worker.h"

namespace carve::kubelet {

class AgentWorker {
 public:
  using Job = std::function<void(AgentLink&)>;
  // `reported` is called in the worker's thread with each answer; a failure is a sentence.
  AgentWorker(AgentLink& agent, std::function<void(Result<AgentReport, std::string>)> reported)
      : agent_(agent), reported_(std::move(reported)), worker_([this] { return turn(); }) {}

  // Runs the job soon, and reads the state after it.
  void run(Job job) EXCLUDES(mutex_);
  void poll() { worker_.wake(); }

 private:
  int64_t turn() EXCLUDES(mutex_);

  AgentLink& agent_;
  const std::function<void(Result<AgentReport, std::string>)> reported_;
  os::Mutex mutex_;
  std::vector<Job> jobs_ GUARDED_BY(mutex_);
  Worker worker_;  // Last: it uses the others.
};

}  // namespace carve::kubelet
