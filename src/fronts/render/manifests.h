// A service as manifests of Kubernetes: a Deployment, and a Service if it has a port. `carve apply`
// translates them to the same slices (pod_requests.h):
//
//   | spec.gpu of the service       | limits of the container                                              |
//   |-------------------------------|----------------------------------------------------------------------|
//   | exclusive, devices 2          | carve.dev/devices 2                                                  |
//   | memory 4GiB, share 30%        | carve.dev/memory, compute, devices: totals of the container          |
//   | memory 50%                    | nvidia.com/gpumem-percentage, gpucores, gpu: HAMi's, of each device  |
//   | memory "16 units"             | aliyun.com/gpu-mem, gpu-core.percentage, label gpu-count: ACK's      |
//   | policy, isolation             | annotations carve.dev/policy, carve.dev/isolation                    |
//
// What Kubernetes counts in whole percents or MiB and the service does not is an error, or is rounded up with
// a warning. Fields without a counterpart are warnings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/json.h"
#include "wire/objects/service_object.h"

namespace carve::fronts {

struct Manifests {
  std::string text;  // YAML, with a line `---` between two documents.
  std::vector<std::string> warnings;
};

// Returns the manifests, or every error. The service was checked.
Result<Manifests, api::FieldErrors> manifests_of(const objects::Metadata&, const objects::ServiceSpec&);

// The address of a workload, as a cluster's document of kind Service has it.
struct ClusterService {
  std::string name;
  uint32_t port = 0;
};

// Returns whether the JSON document is of a cluster's kind Service (apiVersion v1), which is not ours.
bool is_cluster_service(std::string_view json);
// Returns its name and its first port, or every error.
Result<ClusterService, api::FieldErrors> read_cluster_service(std::string_view json);

}  // namespace carve::fronts
