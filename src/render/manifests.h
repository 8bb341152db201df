// A service as Kubernetes manifests: a Deployment, and a Service if it has a port. `carve apply` translates
// them to the same slices (pod_requests.h):
//
//   | spec.gpu of the service       | limits of the container                                              |
//   |-------------------------------|----------------------------------------------------------------------|
//   | exclusive, devices 2          | carve.dev/devices 2                                                  |
//   | memory 4GiB, share 30%        | carve.dev/memory, compute, devices: totals of the container          |
//   | memory 50%                    | nvidia.com/gpumem-percentage, gpucores, gpu: HAMi's, of each device  |
//   | memory "16 units"             | aliyun.com/gpu-mem, gpu-core.percentage, label gpu-count: ACK's      |
//   | policy, isolation             | annotations carve.dev/policy, carve.dev/isolation                    |
//
// An amount that Kubernetes cannot express in whole percents or MiB is an error, or is rounded up with a
// warning. Fields without a counterpart are warnings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "objects/service_object.h"
#include "wire/api/json.h"

namespace carve::render {

struct Manifests {
  std::string text;  // YAML, with a line `---` between two documents.
  std::vector<std::string> warnings;
};

// Returns the manifests, or every error. The service was checked.
Result<Manifests, api::FieldErrors> manifests_of(const objects::Metadata&, const objects::ServiceSpec&);

}  // namespace carve::render
