#include "controller/runtime/limit_warnings.h"

#include <fmt/format.h>

namespace carve::controller {

std::vector<std::string> limit_warnings(const objects::ServiceSpec& spec,
                                        const runner::LimitProblems& problems) {
  if (!spec.run.image.empty()) return {};
  std::vector<std::string> out;
  const auto add = [&](const char* name, const objects::Resource& resource, const std::string& problem) {
    const std::string& reason = problem.empty() && spec.gpu ? problems.with_slice : problem;
    if (!resource.limit.empty() && !reason.empty())
      out.push_back(fmt::format("{} limit: not enforced: {}", name, reason));
  };
  add("cpu", spec.cpu, problems.cpu);
  add("memory", spec.memory, problems.memory);
  return out;
}

}  // namespace carve::controller
