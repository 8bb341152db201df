// The caller's own kubectl: it has the address of the cluster and the caller's rights, exec plugins included.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace carve::kubectl {

// Which cluster, as kubectl's own options say; empty: kubectl decides.
struct KubectlOptions {
  std::string kubeconfig, context;
};

// Runs kubectl and returns its standard output. Fails with the last line of its standard error.
Result<std::string, std::string> run_kubectl(const KubectlOptions&, std::vector<std::string> words);

}  // namespace carve::kubectl
