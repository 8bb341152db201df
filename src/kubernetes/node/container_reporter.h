// Reports the running containers of the agent's slices to the agent, and finds out whether the runtime
// supports CDI. While a container is expected, it polls the runtime every 200 ms for up to a minute,
// otherwise every 5 s, or every second while there are slices of claims, because a claim may get more pods.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "kubernetes/node/agent_api.h"
#include "kubernetes/node/rules/container_reports.h"
#include "kubernetes/node/runtime/container_runtime.h"
#include "os/mutex.h"
#include "os/worker.h"

namespace carve::kubernetes::node {

class ContainerReporter {
 public:
  // Both are called in the reporter's thread.
  struct Hooks {
    std::function<void(const RuntimeCapability&)> found;  // Called when the capability has changed.
    std::function<void(const PodContainer&, const std::string& message)> not_mounted;
    // Reads the claim of the slice again and sends its pods to the agent. Returns false if it cannot be read yet.
    std::function<bool(const api::Slice&)> look_up = [](const api::Slice&) { return false; };
    // Returns which containers have claims. Fails if kubelet does not respond.
    std::function<Result<std::vector<ContainerClaims>, std::string>()> claims = [] {
      return std::vector<ContainerClaims>();
    };
    // A container does not get the slice of its claim.
    std::function<void(const PodContainer&, const std::string& message)> refused = [](const PodContainer&,
                                                                                      const std::string&) {};
  };

  ContainerReporter(AgentApi& agent, ContainerRuntime& runtime, Hooks hooks)
      : agent_(agent),
        runtime_(runtime),
        hooks_(std::move(hooks)),
        worker_({.turn = [this] { return turn(); }}) {}

  // Announces that a container is about to start. Thread-safe.
  void expect() EXCLUDES(mutex_);
  RuntimeCapability capability() const EXCLUDES(mutex_);

 private:
  int64_t turn() EXCLUDES(mutex_);
  void ask_capability(int64_t now) EXCLUDES(mutex_);
  void report_containers();
  void report(const ContainerReport&);
  // Examines the containers that may have a claim. Returns whether the agent has slices of claims.
  bool report_claims(const api::AgentReport&, const std::vector<RuntimeContainer>&);
  void report_claim(const api::AgentReport&, const RuntimeContainer&, const std::vector<ContainerClaims>&);

  AgentApi& agent_;
  ContainerRuntime& runtime_;
  const Hooks hooks_;
  std::set<std::string> reported_;
  std::set<std::string> looked_up_;  // Containers of unknown pods, after their claim was read again.
  bool has_claims_ = false;
  int64_t asked_at_ = 0;  // When the capability was last read; 0 if never.
  std::string last_problem_;
  mutable os::Mutex mutex_;
  RuntimeCapability capability_ GUARDED_BY(mutex_) = {
      .is_known = false, .has_cdi = false, .message = "the container runtime has not responded yet"};
  int64_t expected_until_ GUARDED_BY(mutex_) = 0;
  os::Worker worker_;  // Declared last, because it uses the other members.
};

}  // namespace carve::kubernetes::node
