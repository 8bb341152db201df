#include "kubectl/verb_tools.h"

namespace carve::kubectl {

int complain(const std::string& sentence) {
  fmt::print(stderr, "kubectl-carve: {}\n", sentence);
  return failed_status;
}

Result<std::string, std::string> get(const VerbOptions& options, const std::string& path) {
  return run_kubectl(options.kubectl, {"get", "--raw", path});
}

}  // namespace carve::kubectl
