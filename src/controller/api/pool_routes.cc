#include "controller/api/pool_routes.h"

#include "controller/api/object_routes.h"
#include "controller/api/planning.h"
#include "controller/nodes/node_rules.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/service_form.h"

namespace carve::controller {
namespace {

using K = FailureKind;
using objects::Kind;

Call of_pools(const Call& call) { return {call.context, call.request, call.caller, Kind::pool, call.names}; }

std::vector<std::string> names_of(const std::vector<Pointer>& objects) {
  std::vector<std::string> out;
  for (const Pointer& object : objects) out.push_back(object->key.name);
  return out;
}

Outcome<Pointer> named_pool(const Call& call) {
  if (Pointer pool = call.context.objects.find(pool_key(call.names[0]))) return pool;
  return failure(K::not_found, "there is no pool {}", call.names[0].substr(0, 80));
}

// Returns whether a new or changed object asks for slices of its pool anew.
bool asks_anew(const Call& call, const Submission& submission) {
  const auto& gpu = submission.form.gpu;
  if (!gpu || gpu->exclusive) return false;
  const Pointer present =
      call.context.objects.find({submission.kind, submission.metadata.namespace_, submission.metadata.name});
  if (!present) return true;
  const objects::ServiceSpec before = service_form(*present);
  return before.pool != submission.form.pool || !before.gpu || before.gpu->exclusive;
}

// Returns whether a new or changed object asks for a slice without a share that it has not yet.
bool asks_best_effort_anew(const Call& call, const Submission& submission) {
  const auto is_without_share = [](const std::optional<objects::Gpu>& gpu) {
    return gpu && !gpu->exclusive && gpu->share.empty();
  };
  if (!is_without_share(submission.form.gpu)) return false;
  const Pointer present =
      call.context.objects.find({submission.kind, submission.metadata.namespace_, submission.metadata.name});
  if (!present) return true;
  const objects::ServiceSpec before = service_form(*present);
  return before.pool != submission.form.pool || !is_without_share(before.gpu);
}

http::Response refuse_unknown(const Call& call, const std::string& name) {
  const std::vector<std::string> names = names_of(call.context.objects.list(Kind::pool));
  return refuse(api::FieldErrors{
      {.field = "spec.pool",
       .value = name.substr(0, 80),
       .sentence = names.empty() ? fmt::format("spec.pool: there is no pool '{}'; leave it out for any node",
                                               name.substr(0, 80))
                                 : fmt::format("spec.pool: there is no pool '{}'; there are {}",
                                               name.substr(0, 80), fmt::join(names, ", "))}});
}

}  // namespace

http::Response list_pools(const Call& call) { return list_objects(of_pools(call)); }
http::Response get_pool(const Call& call) { return get_object(of_pools(call)); }
http::Response put_pool(const Call& call) { return put_object(of_pools(call)); }
http::Response patch_pool(const Call& call) { return patch_object(of_pools(call)); }

http::Response delete_pool(const Call& call) {
  if (const auto allowed = check_operator(call, Kind::pool); !allowed) return refuse(allowed.error());
  const auto pool = named_pool(call);
  if (!pool) return refuse(pool.error());
  if (const auto is_expected = check_version(call, **pool); !is_expected) return refuse(is_expected.error());
  std::vector<std::string> nodes;
  for (const Pointer& node : call.context.objects.list(Kind::node))
    if (node_spec(*node).pool == call.names[0]) nodes.push_back(node->key.name);
  if (!nodes.empty())
    return refuse(K::failed_precondition,
                  fmt::format("pool {} has the nodes {}; take them out first: carve node pool NODE ''",
                              call.names[0], fmt::join(nodes, ", ")));
  if (const auto removed = call.context.objects.remove((*pool)->key); !removed)
    return refuse(removed.error());
  return shown(call, **pool);
}

http::Response get_slicing(const Call& call) {
  const auto pool = named_pool(call);
  if (!pool) return refuse(pool.error());
  return document(slicing_of(**pool, call.context.objects.list(Kind::node), call.context.views.now_ns()));
}

Outcome<Object> planned_pool(const Call& call, const Submission& submission) {
  auto planned = operators_object(call, submission, "{}");
  if (!planned) return planned;
  Object& object = *planned;
  object.status =
      api::write(pool_status(object, call.context.objects.list(Kind::node), call.context.views.now_ns()));
  return object;
}

std::vector<std::string> pool_warnings(const Call& call, const Submission& submission) {
  std::vector<std::string> out = warnings_of(call, submission);
  if (submission.kind != Kind::pool) return out;
  const Pointer present = call.context.objects.find(pool_key(submission.metadata.name));
  if (!present || !pool_spec(*present).label_sync) return out;
  const Object wanted{.spec = submission.spec};
  if (!pool_spec(wanted).label_sync)
    out.emplace_back("existing nodes may keep another compute policy than the pool says");
  return out;
}

std::optional<http::Response> refused_by_pool(const Call& call, const std::vector<Submission>& submissions) {
  const auto nodes = call.context.objects.list(Kind::node);
  for (const Submission& submission : submissions) {
    const std::string& name = submission.form.pool;
    if (name.empty() || !objects::text_of(submission.kind).is_workload) continue;
    const Pointer pool = call.context.objects.find(pool_key(name));
    if (!pool) return refuse_unknown(call, name);
    if (pool_spec(*pool).best_effort == "refuse" && asks_best_effort_anew(call, submission))
      return refuse(K::failed_precondition, best_effort_problem(name));
    if (!asks_anew(call, submission)) continue;
    const std::string problem = slicing_problem(*pool, nodes, call.context.views.now_ns());
    if (problem.empty()) continue;
    if (!pool_spec(*pool).sharing) return refuse(K::failed_precondition, problem);
    return refuse_as("carve:slicing-unavailable", problem);
  }
  return std::nullopt;
}

}  // namespace carve::controller
