// What happens before a container of a slot starts: kubelet's list says whose slot it is, the API server what
// was placed for it, and the agent grants exactly that. rules/container_start.h decides; this class asks, and
// asks again while the answer may change, for 25 s: kubelet gives up after 30 s and calls again later
// (k8s.io/kubernetes, pkg/kubelet/cm/devicemanager, KubeletPreStartContainerRPCTimeoutInSecs).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/failure.h"
#include "kubelet/agent_link.h"
#include "kubelet/rules/container_start.h"
#include "kubelet/rules/runtime_capability.h"

namespace carve::kubelet {

inline constexpr int64_t max_start_ns = 25'000'000'000;

class ContainerStarter {
 public:
  using PodAnswer = Result<std::optional<SeenPod>, std::string>;
  // Where it asks. All are called in the threads of the plugin, several at once, and may block.
  struct Sources {
    std::string node;
    std::function<Result<std::vector<ContainerDevices>, std::string>()> list;
    // No pod: the API server has none of that name. Fails if it is not known.
    std::function<PodAnswer(const std::string& name_space, const std::string& name)> pod;
    std::function<RuntimeCapability()> runtime;
    std::function<void(const api::SliceRequest&, const api::Slice&)> granted;
    // The same sentence may come again and again. `pod`: if it is known whose container it is.
    std::function<void(const std::optional<PodContainer>& pod, const std::string& sentence)> refused;
    // A slice before may be in the way, of a pod that is gone.
    std::function<void()> look_for_orphans;
    std::function<int64_t()> now;
    std::function<void(int64_t ns)> sleep;
  };

  ContainerStarter(AgentLink& agent, Sources sources) : agent_(agent), sources_(std::move(sources)) {}

  // Returns when the agent has granted the slice of the slot's container. A failure's sentence is for the
  // pod's user.
  Outcome<void> start(ContainerSlot, const std::function<bool()>& is_over);

 private:
  // The outcome of one round, and whether the next may be another.
  struct Round {
    std::string sentence;  // Empty: the slice is granted.
    bool may_change = false;
    std::optional<PodContainer> pod;
  };
  Round try_once(ContainerSlot);
  Result<StartDecision, std::string> decide(ContainerSlot);
  Round grant(const StartDecision&);

  AgentLink& agent_;
  const Sources sources_;
};

}  // namespace carve::kubelet
