// Whether a container may start with the slot that kubelet gave it (PreStartContainer), and with which slice.
//
// kubelet names the slot and not the container, so the container is found in kubelet's own list of pod
// resources, which may be late, and may name a container that has ended. What the slice is, the pod's
// annotation carve.dev/slices says; it is written with the binding, by the coordinator alone. A container
// never starts with another container's slice, and never without its own: what is not certain is asked again.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/container_slot.h"
#include "kubelet/rules/pod_object.h"
#include "wire/api/problem.h"
#include "wire/api/slice.h"

namespace carve::kubelet {

inline constexpr const char* slot_resource = "carve.dev/slot";

// A container as the list of pod resources names it.
struct ContainerName {
  std::string name_space, pod, container;

  std::string text() const { return name_space + "/" + pod + ", container " + container; }
  friend auto operator<=>(const ContainerName&, const ContainerName&) = default;
};

// The devices of one resource that one container has.
struct ContainerDevices {
  ContainerName container;
  std::string resource;
  std::vector<std::string> devices;
};

// Returns the containers that have the slot, each once.
std::vector<ContainerName> containers_with(const std::vector<ContainerDevices>&, ContainerSlot);

// A container that may be the one, with its pod; no pod: the API server has none of that name.
struct StartCandidate {
  ContainerName container;
  std::optional<SeenPod> pod;
};

struct StartContext {
  std::string node;  // This one.
  ContainerSlot slot;
  std::map<Uuid, Bytes> devices;  // That the agent has, with their usable memory.
};

struct StartDecision {
  enum class Kind {
    grant,   // The agent is asked for `request`.
    retry,   // It may be different in a moment.
    refuse,  // kubelet tries again later; the pod shows the sentence.
  };
  Kind kind = Kind::refuse;
  api::SliceRequest request;             // With `grant`.
  std::string sentence;                  // Why not; empty with `grant`.
  std::optional<PodContainer> pod = {};  // Whose container it is, if that is known.
};

StartDecision decide_start(const StartContext&, std::span<const StartCandidate>);

// Returns whether the agent's refusal may end soon: the slot's container before has processes, memory is not
// free yet, or the agent is not there. Otherwise the request itself is refused.
bool may_pass(const api::Problem&);

}  // namespace carve::kubelet
