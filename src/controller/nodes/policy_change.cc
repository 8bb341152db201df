#include "controller/nodes/policy_change.h"

#include <fmt/ranges.h>

#include <iterator>
#include <map>
#include <memory>

#include "controller/nodes/node_rules.h"
#include "controller/objects/service_form.h"

namespace carve::controller {
namespace {

constexpr size_t max_names = 5;  // Names of workloads, or of nodes, in one warning.

using Pointer = ObjectRegistry::Pointer;

std::vector<Pointer> nodes_after(const std::set<std::string>& changed, const std::string& wanted,
                                 const std::vector<Pointer>& nodes) {
  std::vector<Pointer> out = nodes;
  for (Pointer& node : out) {
    if (!changed.contains(node->key.name)) continue;
    Object copy = *node;
    objects::NodeStatus status = node_status(copy);
    status.policy.effective = wanted;
    copy.status = std::move(status);
    node = std::make_shared<const Object>(std::move(copy));
  }
  return out;
}

std::string listed(const std::set<std::string>& names) {
  if (names.size() <= max_names) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), std::next(names.begin(), max_names), ", "),
                     names.size() - max_names);
}

}  // namespace

std::vector<std::string> policy_warnings(const std::set<std::string>& changed, const std::string& wanted,
                                         const std::vector<Pointer>& nodes,
                                         const std::vector<Pointer>& workloads) {
  const std::vector<Pointer> after = nodes_after(changed, wanted, nodes);
  std::map<std::string, std::set<std::string>> stranded;  // Keyed by the policy that they need.
  for (const Pointer& workload : workloads) {
    const objects::ServiceSpec form = service_form(*workload);
    if (!form.gpu || form.gpu->policy.empty() || form.gpu->policy == wanted) continue;
    const auto is_missing = [&](const std::vector<Pointer>& all) {
      return !policy_problem(form.gpu->policy, form.pool, all, "policy").empty();
    };
    if (!is_missing(nodes) && is_missing(after)) stranded[form.gpu->policy].insert(workload->key.name);
  }
  std::vector<std::string> out;
  for (const auto& [policy, names] : stranded)
    out.push_back(
        fmt::format("no node has the policy {} once {} {}: the replicas of {} keep running but could not be "
                    "started again; set this policy on another node, or change the policy of the service",
                    policy,
                    changed.size() == 1 ? fmt::format("node {} has", *changed.begin())
                                        : fmt::format("nodes {} have", listed(changed)),
                    wanted, listed(names)));
  return out;
}

}  // namespace carve::controller
