// The ResourceSlice (resource.k8s.io/v1) with the devices of a node that is used through DRA. Pure: computes the
// object from the agent's state. One object per node, because while two objects of a pool have different
// generations, the scheduler allocates nothing from the pool.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/node_mode.h"
#include "wire/api/agent_report.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::node {

inline constexpr const char* resource_slices_path = "/apis/resource.k8s.io/v1/resourceslices";
inline constexpr size_t max_slice_object_devices = 64;  // kubernetes 1.36.2: with taints; 128 without.

struct ResourceSliceInput {
  std::string node, node_uid;
  api::AgentReport agent;
  NodeMode mode = NodeMode::memory_and_compute;
  std::set<Uuid> cordoned;  // The node's annotation carve.dev/cordon.
  std::string blocked;      // Why no device takes new claims, as a taint's value. Empty if they do.
  bool ends_pods = false;   // Unhealthy devices get the effect NoExecute (--taint-execute).
};

// Returns the object's name. Node names of more than 240 bytes are shortened and get a hash.
std::string resource_slice_name(const std::string& node);

// Returns the object with pool generation 1 and without a resourceVersion. The devices' order is that of their
// indexes and never depends on their use.
api::Json resource_slice(const ResourceSliceInput&);

// Returns the object to write in place of `stored`, with the next generation and the times of the taints that it
// keeps. Null if `stored` is up to date. `last_generation` is the highest one that this program has written.
api::Json updated_resource_slice(const api::Json& stored, api::Json wanted, uint64_t last_generation);

// Returns the UUIDs in the annotation. Invalid ones are ignored.
std::set<Uuid> read_cordon(std::string_view annotation);

// The health of a device, which kubelet shows in the status of the pods that use it.
struct DeviceCondition {
  std::string pool, device;
  bool is_healthy = true;
  std::string message;  // Empty if it is healthy.

  friend bool operator==(const DeviceCondition&, const DeviceCondition&) = default;
};
std::vector<DeviceCondition> device_conditions(const std::string& node, const api::AgentReport&);

}  // namespace carve::kubernetes::node
