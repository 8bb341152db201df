// Tells the agent which containers of its slices run, and finds out whether the runtime has CDI. A container
// that is expected is looked for each 200 ms, for a minute; otherwise the runtime is asked each 5 s.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "kubelet/agent_link.h"
#include "kubelet/rules/container_reports.h"
#include "kubelet/runtime/container_runtime.h"
#include "kubelet/worker.h"

namespace carve::kubelet {

class ContainerReporter {
 public:
  // Both are called in the reporter's thread.
  struct Hooks {
    std::function<void(const RuntimeCapability&)> found;  // When it is another one than before.
    std::function<void(const PodContainer&, const std::string& sentence)> not_mounted;
  };

  ContainerReporter(AgentLink& agent, ContainerRuntime& runtime, Hooks hooks)
      : agent_(agent), runtime_(runtime), hooks_(std::move(hooks)), worker_([this] { return turn(); }) {}

  // A container is about to start. May be called in any thread.
  void expect() EXCLUDES(mutex_);
  RuntimeCapability capability() const EXCLUDES(mutex_);

 private:
  int64_t turn() EXCLUDES(mutex_);
  void ask_capability(int64_t now) EXCLUDES(mutex_);
  void report_containers();
  void report(const ContainerReport&);

  AgentLink& agent_;
  ContainerRuntime& runtime_;
  const Hooks hooks_;
  std::set<std::string> reported_;
  int64_t asked_at_ = 0;  // For the capability; 0: not yet.
  std::string last_problem_;
  mutable os::Mutex mutex_;
  RuntimeCapability capability_ GUARDED_BY(mutex_) = {
      .is_known = false, .has_cdi = false, .sentence = "the container runtime has not answered yet"};
  int64_t expected_until_ GUARDED_BY(mutex_) = 0;
  Worker worker_;  // Last: it uses the others.
};

}  // namespace carve::kubelet
