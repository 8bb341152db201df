// Renders a service as Kubernetes manifests: a Deployment, and a Service if it has a port. `carve apply`
// translates them back into the same slices (pod_requests.h):
//
//   | spec.gpu of the service       | limits of the container                                              |
//   |-------------------------------|----------------------------------------------------------------------|
//   | exclusive, devices 2          | carve.dev/devices 2                                                  |
//   | memory 4GiB, share 30%        | carve.dev/memory, compute, devices: totals of the container          |
//   | memory 50%                    | nvidia.com/gpumem-percentage, gpucores, gpu: HAMi's, of each device  |
//   | memory "16 units"             | aliyun.com/gpu-mem, gpu-core.percentage, label gpu-count: ACK's      |
//   | policy, isolation             | annotations carve.dev/policy, carve.dev/isolation                    |
//
// An amount that cannot be expressed in whole percents or MiB is either an error or rounded up with a
// warning. Fields without a counterpart cause warnings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "objects/service_object.h"
#include "wire/api/json.h"
#include "wire/api/json_value.h"

namespace carve::render {

struct Manifests {
  std::string text;  // YAML documents separated by `---` lines.
  std::vector<std::string> warnings;
};

// The same manifests as objects: those that `carve render` prints and those that the controller applies to a
// cluster (controller/kubernetes/workload_objects.h).
struct ServiceObjects {
  std::vector<api::Json> objects;
  std::vector<std::string> warnings;
};

// Returns the objects. Fails with every error. The service must be valid.
Result<ServiceObjects, api::FieldErrors> objects_of(const objects::Metadata&, const objects::ServiceSpec&);
// Returns the objects as manifests.
Result<Manifests, api::FieldErrors> manifests_of(const objects::Metadata&, const objects::ServiceSpec&);

}  // namespace carve::render
