// Calls the user's own kubectl, which has the cluster's address and the user's credentials, exec plugins
// included.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace carve::kubernetes::cli {

// Options that select the cluster, named as in kubectl. Empty ones are not passed on.
struct KubectlOptions {
  std::string kubeconfig, context;
  std::vector<std::string> more;  // More kubectl options, passed as they are: "--as=system:admin".
};

inline constexpr int no_time_limit = 0;

// Runs kubectl and returns its standard output. Fails if kubectl does not exit within `max_seconds`, or with
// the last line of its standard error. Thread-safe.
Result<std::string, std::string> run_kubectl(const KubectlOptions&, std::vector<std::string> words,
                                             int max_seconds = no_time_limit);

}  // namespace carve::kubernetes::cli
