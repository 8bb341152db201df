// Resource claims of carve.dev (DRA) as the views show them: their requests, and the devices that they have. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/slice.h"
#include "kubernetes/cli/explain.h"
#include "kubernetes/cli/views.h"

namespace carve::kubernetes::cli {

struct ClaimedPart {
  std::string node;
  uint32_t device = 0;  // Index on the node.
  Bytes memory;         // 0 if the whole device was allocated exclusively.
  uint32_t compute_percent = 0;
};

// One request of a claim that waits.
struct ClaimRequest {
  Bytes memory;  // On each device; 0 means a whole device.
  uint32_t compute_percent = 0;
  uint32_t count = 1;
};

struct ViewClaim {
  std::string name_space, name;
  std::vector<std::string> pods;  // Names of the pods that it is reserved for.
  bool is_allocated = false;
  std::vector<ClaimedPart> parts;  // If it is allocated.
  std::vector<ClaimRequest> requests;
};

// Reads a list of claims (/apis/resource.k8s.io/v1/resourceclaims). Leaves out those that neither have nor request a
// device of carve.dev. Fails with a message.
Result<std::vector<ViewClaim>, std::string> read_claims(std::string_view json);

// Counts the claims' parts in the use of the nodes' devices.
void add_claims(ClusterView&, const std::vector<ViewClaim>&);

// Adds a row for each claim. If `name_space` is empty, all namespaces are included.
void add_claims(SliceList&, const ClusterView&, const std::vector<ViewClaim>&, const std::string& name_space);

// Explains a pod with claims. `pod_json` is the whole pod. Fails with a message if it has no claim of carve.dev.
Result<Explanation, std::string> explain_claims(const ClusterView&, const std::vector<ViewClaim>&,
                                                std::string_view pod_json);

}  // namespace carve::kubernetes::cli
