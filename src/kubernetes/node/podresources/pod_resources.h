// kubelet's list of the devices of each container (k8s.io/kubelet, podresources v1). A call waits at most 2
// s. kubelet rejects more than 100 calls per second, which is a failure like any other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kubernetes/node/rules/container_reports.h"

namespace carve::kubernetes::node {

class PodResources {
 public:
  // Returns the list at this socket. Connects on the first call, and again after kubelet has restarted.
  static std::unique_ptr<PodResources> at(const std::string& socket);
  virtual ~PodResources() = default;
  // Thread-safe.
  virtual Result<std::vector<ContainerDevices>, std::string> list() = 0;
  // Returns the containers with claims of carve.dev. Thread-safe.
  virtual Result<std::vector<ContainerClaims>, std::string> claims() = 0;
};

}  // namespace carve::kubernetes::node
