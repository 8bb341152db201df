// Checks whether a pod fits on one node, and on which of its devices. The decisions are built from these
// functions.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kubernetes/coordinator/cache/assumed_pods.h"

namespace carve::kubernetes::coordinator {

inline constexpr std::string_view unknown_pod = "the pod is not known";
inline constexpr std::string_view no_agent = "no agent";

// The devices of one container.
struct DeviceChoice {
  const ContainerAsk* ask;
  place::Assignment assignment;
};

// Returns what each container of the pod requests on the node, or null if nodes of this kind cannot serve the
// pod. The pod must have a request, and the node must have a state.
const std::vector<ContainerAsk>* asks_on(Cache&, const CachedPod&, const CachedNode&);

// Returns whether only one container requests a slice and any device may serve it.
bool is_simple(const std::vector<ContainerAsk>&);

// Returns the devices for each container, or no value if they do not fit.
std::optional<std::vector<DeviceChoice>> choose_devices(Cache&, const CachedPod&, const CachedNode&);
// Returns the slices that result from these choices.
kubernetes::PodSlices slices_of(std::span<const DeviceChoice>, const CachedNode&);

// Returns the short name of the rule that rejects the pod on this node. Empty if the pod fits.
std::string_view refusal(Cache&, const CachedPod&, const CachedNode&);
// Like refusal(), but with the nominated pods of higher priority placed on the node.
std::string_view refusal_with_nominated(Cache&, const CachedPod&, const CachedNode&);

// Places the pods of higher priority that are nominated for the node.
void place_nominated(AssumedPods&, Cache&, const CachedPod& asking, const CachedNode&);

}  // namespace carve::kubernetes::coordinator
