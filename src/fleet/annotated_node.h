// Reads a node and the slices on it from annotations of Kubernetes objects: carve.dev/devices and
// carve.dev/cordon of the node, carve.dev/slices of its pods.
#pragma once

#include <span>
#include <vector>

#include "fleet/device_use.h"
#include "kubernetes/api/answers.h"
#include "kubernetes/format/node_devices.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::fleet {

// Fails with a message if the annotations cannot be read, or contradict each other; such a node is not used.
Result<GpuNode, std::string> read_node(const kubernetes::ObjectMeta&);

// Returns what the pods' slices take of each device of the node. Parts on devices that the node does not have
// are ignored.
std::vector<DeviceUse> device_uses(const GpuNode&, std::span<const kubernetes::PodSlices* const>);

}  // namespace carve::fleet
