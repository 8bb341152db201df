#include "controller/api/pool_routes.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "controller/api/planning.h"
#include "controller/nodes/node_rules.h"
#include "controller/nodes/policy_change.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/service_form.h"
#include "objects/rules/pool_check.h"

namespace carve::controller {
namespace {

using objects::Kind;

std::vector<std::string> names_of(const std::vector<Pointer>& objects) {
  std::vector<std::string> out;
  for (const Pointer& object : objects) out.push_back(object->key.name);
  return out;
}

Outcome<Pointer> named_pool(const Call& call) {
  if (Pointer pool = call.context.objects.find(pool_key(call.names[0]))) return pool;
  return failure(FailureKind::not_found, "there is no pool {}", call.names[0].substr(0, 80));
}

// Returns whether a new or changed object requests slices of its pool in addition to those it has.
bool asks_anew(const Call& call, const Submission& submission) {
  const auto& gpu = submission.form.gpu;
  if (!gpu || gpu->exclusive) return false;
  const Pointer present =
      call.context.objects.find({submission.kind, submission.metadata.namespace_, submission.metadata.name});
  if (!present) return true;
  const objects::ServiceSpec before = service_form(*present);
  return before.pool != submission.form.pool || !before.gpu || before.gpu->exclusive;
}

// Returns whether a new or changed object requests a best-effort slice and did not before.
bool asks_best_effort_anew(const Call& call, const Submission& submission) {
  const auto is_without_share = [](const std::optional<objects::Gpu>& gpu) {
    return gpu && !gpu->exclusive && gpu->share.empty() &&
           (gpu->parts.empty() || gpu->parts.front().share.empty());
  };
  if (!is_without_share(submission.form.gpu)) return false;
  const Pointer present =
      call.context.objects.find({submission.kind, submission.metadata.namespace_, submission.metadata.name});
  if (!present) return true;
  const objects::ServiceSpec before = service_form(*present);
  return before.pool != submission.form.pool || !is_without_share(before.gpu);
}

http::Response refuse_unknown(const Call& call, const Submission& submission) {
  const std::string& name = submission.form.pool;
  const std::string field = submission.form.source.dialect == "eas" ? "metadata.resource" : "spec.pool";
  const std::vector<std::string> names = names_of(call.context.objects.list(Kind::pool));
  return refuse(api::FieldErrors{
      {.field = field,
       .value = name.substr(0, 80),
       .message = names.empty()
                      ? fmt::format("{}: there is no pool '{}'; leave the field out to use any node", field,
                                    name.substr(0, 80))
                      : fmt::format("{}: there is no pool '{}'; the pools are {}", field, name.substr(0, 80),
                                    fmt::join(names, ", "))}});
}

}  // namespace

Outcome<void> check_pool_deletion(const Call& call, const std::string& name) {
  std::vector<std::string> nodes;
  for (const Pointer& node : call.context.objects.list(Kind::node))
    if (node_spec(*node).pool == name) nodes.push_back(node->key.name);
  if (nodes.empty()) return {};
  return failure(
      FailureKind::failed_precondition,
      "pool {} still has the nodes {}; remove each from the pool first with carve node pool NODE ''", name,
      fmt::join(nodes, ", "));
}

http::Response get_slicing(const Call& call) {
  const auto pool = named_pool(call);
  if (!pool) return refuse(pool.error());
  return document(slicing_of(**pool, call.context.objects.list(Kind::node), call.context.views.now_ns()));
}

Outcome<Object> planned_pool(const Call& call, const Submission& submission) {
  auto planned = operators_object(call, submission);
  if (!planned) return planned;
  Object& object = *planned;
  object.status = pool_status(object, call.context.objects.list(Kind::node), call.context.views.now_ns());
  return object;
}

namespace {

// Returns warnings about workloads that lose their nodes when the nodes follow the pool's compute policy.
std::vector<std::string> synchronised_warnings(const Call& call, const std::string& pool,
                                               const objects::PoolSpec& wanted) {
  const auto policy = wanted.labels.find(std::string(workload::compute_policy_label));
  if (!wanted.label_sync || policy == wanted.labels.end()) return {};
  const std::vector<Pointer> nodes = call.context.objects.list(Kind::node);
  std::set<std::string> changed;
  for (const Pointer& node : nodes)
    if (node_spec(*node).pool == pool) changed.insert(node->key.name);
  return policy_warnings(changed, policy->second, nodes, call.context.objects.workloads());
}

}  // namespace

std::vector<std::string> pool_warnings(const Call& call, const Submission& submission) {
  std::vector<std::string> out = warnings_of(call, submission);
  if (submission.kind != Kind::pool) return out;
  const Pointer present = call.context.objects.find(pool_key(submission.metadata.name));
  if (!present) return out;
  const auto& wanted = submission.spec.as<objects::PoolSpec>();
  if (pool_spec(*present).label_sync && !wanted.label_sync)
    out.emplace_back("existing nodes may keep a compute policy that differs from the pool's");
  std::ranges::move(synchronised_warnings(call, submission.metadata.name, wanted), std::back_inserter(out));
  return out;
}

namespace {

bool is_sliced_eas(const Submission& submission) {
  return submission.form.source.dialect == "eas" && submission.form.gpu && !submission.form.gpu->exclusive;
}

// Returns why a PAI-EAS document may not have a slice in its pool: GPU slicing requires a resource group or a
// quota. A controller without pools has one group with all its nodes.
std::string eas_slicing_problem(const Call& call, const std::string& name) {
  if (!name.empty()) {
    const Pointer pool = call.context.objects.find(pool_key(name));
    return pool ? workload::eas_problem(objects::node_pool(name, pool_spec(*pool))) : "";
  }
  std::vector<std::string> names;
  for (const Pointer& pool : call.context.objects.list(Kind::pool)) {
    const auto checked = objects::node_pool(pool->key.name, pool_spec(*pool));
    if (checked.type == PoolType::eas || checked.type == PoolType::lingjun) names.push_back(pool->key.name);
  }
  if (call.context.objects.list(Kind::pool).empty()) return "";
  return fmt::format(
      "metadata.resource: is required, because GPU slicing needs an EAS resource group or a Lingjun resource "
      "quota; {}",
      names.empty() ? "create a pool of type eas and set it here"
                    : fmt::format("use one of: {}", fmt::join(names, ", ")));
}

}  // namespace

std::optional<http::Response> refused_by_pool(const Call& call, const std::vector<Submission>& submissions) {
  const auto nodes = call.context.objects.list(Kind::node);
  for (const Submission& submission : submissions) {
    const std::string& name = submission.form.pool;
    if (is_sliced_eas(submission) && asks_anew(call, submission))
      if (const std::string problem = eas_slicing_problem(call, name); !problem.empty())
        return refuse_as("carve:slicing-unavailable", problem);
    if (name.empty() || !objects::text_of(submission.kind).is_workload) continue;
    const Pointer pool = call.context.objects.find(pool_key(name));
    if (!pool) return refuse_unknown(call, submission);
    if (pool_spec(*pool).best_effort == BestEffortRule::refuse && asks_best_effort_anew(call, submission))
      return refuse(FailureKind::failed_precondition, best_effort_problem(name));
    if (!asks_anew(call, submission)) continue;
    const std::string problem = slicing_problem(*pool, nodes, call.context.views.now_ns());
    if (problem.empty()) continue;
    return refuse_as("carve:slicing-unavailable", problem);
  }
  return std::nullopt;
}

}  // namespace carve::controller
