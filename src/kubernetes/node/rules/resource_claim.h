// Resource claims (resource.k8s.io/v1) that are prepared on this node: reading one, and deciding which slice its
// devices become. Amounts come only from the allocation (consumedCapacity), in which the scheduler has filled in
// the defaults. All of a claim's devices on this node become one slice.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/node_mode.h"
#include "kubernetes/api/answers.h"
#include "wire/api/agent_report.h"

namespace carve::kubernetes::node {

inline constexpr const char* dra_driver = "carve.dev";
inline constexpr size_t max_claim_results = 32;  // kubernetes 1.36.2, AllocationResultsMaxSize.

// Labels of a claim's slice, with which the claim can be found again.
inline constexpr const char* claim_namespace_label = "carve.dev/claim-namespace";
inline constexpr const char* claim_name_label = "carve.dev/claim";

// A claim as kubelet names it.
struct ClaimName {
  std::string name_space, name, uid;

  std::string text() const { return name_space + "/" + name; }
  friend auto operator<=>(const ClaimName&, const ClaimName&) = default;
};

// A device in the claim's allocation.
struct ClaimResult {
  std::string request;  // "gpu", or "gpu/small" for an alternative of firstAvailable.
  std::string driver, pool, device, share_id;
  bool is_admin = false;                        // The request has adminAccess.
  std::map<std::string, std::string> consumed;  // Quantities by capacity. Empty if the device is not shared.
};

// Settings for the slice (kind SliceParameters) in the claim or its class. No value means the default.
struct SliceParameters {
  std::optional<LatencyClass> latency_class;
  std::optional<Isolation> isolation;

  friend bool operator==(const SliceParameters&, const SliceParameters&) = default;
};

struct SeenClaim {
  ClaimName name;
  std::map<std::string, std::string> labels;
  bool is_allocated = false;
  std::vector<ClaimResult> results;  // Those of other drivers too.
  SliceParameters parameters;        // Those of the claim replace those of the class.
  std::vector<ClaimPod> pods;        // The pods in status.reservedFor.
  std::string problem;               // Why the claim cannot be prepared anywhere. Empty if it can.
};

// Parses a whole claim, as returned by GET. Fails with a message for the pod's user.
Result<SeenClaim, std::string> read_claim(std::string_view json);

struct ClaimContext {
  std::string node;  // This node; also the name of its pool.
  NodeMode mode = NodeMode::memory_and_compute;
  std::vector<api::Device> devices;
};

// A device as it is reported to kubelet.
struct PreparedDevice {
  std::string request, pool, device, share_id;
  std::string cdi_device;  // Empty for all but the first, because kubelet would repeat it.

  friend bool operator==(const PreparedDevice&, const PreparedDevice&) = default;
};

struct ClaimDecision {
  api::SliceRequest request;
  std::vector<PreparedDevice> devices;
};

// Returns the slice for the claim, or why it cannot have one on this node.
Result<ClaimDecision, std::string> decide_claim(const ClaimContext&, const SeenClaim&);

// Returns "gpu-0", the name of a device in ResourceSlices and claims.
std::string device_name(uint32_t index);

// Returns the claim of the slice; no value if the slice belongs to no claim.
std::optional<ClaimName> claim_of(const api::Slice&);

}  // namespace carve::kubernetes::node
