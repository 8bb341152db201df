// Decides whether a container may start with the slot that kubelet gave it (PreStartContainer), and with
// which slice.
//
// kubelet passes the slot but not the container, so the container is looked up in kubelet's list of pod
// resources. The list may be late and may contain a container that has ended. The slice comes from the pod's
// annotation carve.dev/slices, which only the coordinator writes, with the binding. A container never starts
// with another container's slice or without its own, so an uncertain start is retried.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/container_slot.h"
#include "kubernetes/node/rules/pod_object.h"
#include "wire/api/problem.h"
#include "wire/api/slice.h"

namespace carve::kubernetes::node {

inline constexpr const char* slot_resource = "carve.dev/slot";

// A container as identified in the list of pod resources.
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

// Returns the containers that have the slot, without duplicates.
std::vector<ContainerName> containers_with(const std::vector<ContainerDevices>&, ContainerSlot);

// A container that may be the one that starts, with its pod. It has no pod if the API server has no pod of
// that name.
struct StartCandidate {
  ContainerName container;
  std::optional<SeenPod> pod;
};

struct StartContext {
  std::string node;  // This node.
  ContainerSlot slot;
  std::map<Uuid, Bytes> devices;  // The agent's devices and their usable memory.
};

struct StartDecision {
  enum class Kind {
    grant,   // Send `request` to the agent.
    retry,   // The result may change soon.
    refuse,  // kubelet retries later; the pod shows the message.
  };
  Kind kind = Kind::refuse;
  api::SliceRequest request;             // For `grant`.
  std::string message;                   // The reason; empty for `grant`.
  std::optional<PodContainer> pod = {};  // The container's pod, if known.
};

StartDecision decide_start(const StartContext&, std::span<const StartCandidate>);

// Returns whether the agent's rejection is temporary: the slot's previous container still has processes,
// memory is not free yet, or the agent is not running. Otherwise the request itself was rejected.
bool may_pass(const api::Problem&);

}  // namespace carve::kubernetes::node
