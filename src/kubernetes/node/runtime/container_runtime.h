// The container runtime (CRI v1): whether it supports CDI, and which containers run. A call waits at most 2
// s.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kubernetes/node/rules/runtime_capability.h"

namespace carve::kubernetes::node {

class ContainerRuntime {
 public:
  // Returns the runtime at this socket. Connects on the first call, and again after the runtime has
  // restarted.
  static std::unique_ptr<ContainerRuntime> at(const std::string& socket);
  virtual ~ContainerRuntime() = default;
  virtual Result<RuntimeFacts, std::string> facts() = 0;
  virtual Result<std::vector<RuntimeContainer>, std::string> running() = 0;
  // Returns the text that pid_of() parses.
  virtual Result<std::string, std::string> info(const std::string& id) = 0;
};

}  // namespace carve::kubernetes::node
