// kubelet's list of which container has which devices (k8s.io/kubelet, podresources v1). A call waits at most
// 2 s; kubelet answers 100 calls a second and refuses more, which is a failure like others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kubelet/rules/container_start.h"

namespace carve::kubelet {

class PodResources {
 public:
  // Connects with the first call, and again after kubelet has started anew.
  static std::unique_ptr<PodResources> at(const std::string& socket);
  virtual ~PodResources() = default;
  // May be called in several threads at once.
  virtual Result<std::vector<ContainerDevices>, std::string> list() = 0;
};

}  // namespace carve::kubelet
