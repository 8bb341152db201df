// The caller's own kubectl: it has the address of the cluster and the caller's rights, exec plugins included.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace carve::kubernetes::cli {

// The cluster, as in kubectl's own options. Empty ones are left to kubectl.
struct KubectlOptions {
  std::string kubeconfig, context;
  std::vector<std::string> more;  // More kubectl options, passed as they are: "--as=system:admin".
};

inline constexpr int no_time_limit = 0;

// Runs kubectl and returns its standard output. Fails with the last line of its standard error, or if it has
// not ended after `max_seconds`. Thread-safe.
Result<std::string, std::string> run_kubectl(const KubectlOptions&, std::vector<std::string> words,
                                             int max_seconds = no_time_limit);

}  // namespace carve::kubernetes::cli
