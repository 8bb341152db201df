// Runs before a container with a slot starts: it finds the container in kubelet's list and its placement on
// the API server, and has the agent grant exactly that placement. rules/container_start.h decides. This class
// makes the calls and repeats them for up to 25 s while the result may change: kubelet gives up after 30 s
// and calls again later (k8s.io/kubernetes, pkg/kubelet/cm/devicemanager,
// KubeletPreStartContainerRPCTimeoutInSecs).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/failure.h"
#include "kubernetes/node/agent_api.h"
#include "kubernetes/node/rules/container_start.h"
#include "kubernetes/node/rules/runtime_capability.h"

namespace carve::kubernetes::node {

inline constexpr int64_t max_start_ns = 25'000'000'000;

class ContainerStarter {
 public:
  using PodAnswer = Result<std::optional<SeenPod>, std::string>;
  // Functions that read and change other programs' state. All are called concurrently in the plugin's
  // threads, and may block.
  struct Sources {
    std::string node;
    std::function<Result<std::vector<ContainerDevices>, std::string>()> list;
    // Returns no pod if the API server has no pod of that name. Fails if the API server does not respond.
    std::function<PodAnswer(const std::string& name_space, const std::string& name)> pod;
    std::function<RuntimeCapability()> runtime;
    std::function<void(const api::SliceRequest&, const api::Slice&)> granted;
    // May be called repeatedly with the same message. `pod` is set if the container's pod is known.
    std::function<void(const std::optional<PodContainer>& pod, const std::string& message)> refused;
    // Called when the slice of a pod that is gone may be blocking the grant.
    std::function<void()> look_for_orphans;
    std::function<int64_t()> now;
    std::function<void(int64_t ns)> sleep;
  };

  ContainerStarter(AgentApi& agent, Sources sources) : agent_(agent), sources_(std::move(sources)) {}

  // Returns after the agent has granted the slice of the slot's container. On failure the message is for the
  // pod's user.
  Outcome<void> start(ContainerSlot, const std::function<bool()>& is_over);

 private:
  // The outcome of one round, and whether the next round may have another outcome.
  struct Round {
    std::string message;  // Empty if the slice was granted.
    bool may_change = false;
    std::optional<PodContainer> pod;
  };
  Round try_once(ContainerSlot);
  Result<StartDecision, std::string> decide(ContainerSlot);
  Round grant(const StartDecision&);

  AgentApi& agent_;
  const Sources sources_;
};

}  // namespace carve::kubernetes::node
