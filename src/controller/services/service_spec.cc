#include "controller/services/service_spec.h"

#include <algorithm>
#include <utility>

#include "controller/objects/service_form.h"
#include "core/invariant.h"
#include "objects/rules/service_terms.h"

namespace carve::controller {

bool differ_in_size_alone(const objects::ServiceSpec& a, const objects::ServiceSpec& b) {
  if (!a.gpu || !b.gpu || a.gpu->exclusive || b.gpu->exclusive) return false;
  // Adding or removing a share changes the enforcement, which needs a new slice.
  if (a.gpu->share.empty() != b.gpu->share.empty()) return false;
  objects::ServiceSpec same = a;
  same.gpu->memory = b.gpu->memory;
  same.gpu->share = b.gpu->share;
  return revision_spec(same) == revision_spec(b);
}

workload::Service desired_service(const Object& object, const objects::ServiceSpec& spec,
                                  const WorkloadRecord& record) {
  return {.name = object.key.name,
          .revision = record.revision,
          .replicas = spec.stopped || object.is_ending ? 0 : spec.replicas,
          .has_port = spec.port.has_value(),
          .rollout = {.max_surge = spec.target_port ? 0 : spec.update.max_surge,
                      .max_unavailable = spec.target_port ? std::max(spec.update.max_unavailable, 1U)
                                                          : spec.update.max_unavailable,
                      .progress_deadline = spec.update.progress_deadline_seconds * workload::second_ns},
          .grace = spec.termination_grace_period_seconds * workload::second_ns,
          .restart_policy = spec.restart_policy,
          .revised_at = record.revised_ns};
}

namespace {

std::map<std::string, std::string> labels_of(const Object& object, const ReplicaRecord& replica) {
  std::map<std::string, std::string> labels = object.labels;
  labels["carve.dev/kind"] = objects::text_of(object.key.kind).singular;
  labels["carve.dev/name"] = object.key.name;
  labels["carve.dev/namespace"] = object.key.namespace_;
  labels["carve.dev/replica"] = fmt::format("{}", workload::ordinal(replica.replica));
  labels["carve.dev/revision"] = fmt::format("{}", replica.revision);
  return labels;
}

}  // namespace

std::optional<api::SliceRequest> slice_request(const Object& object, const objects::ServiceSpec& spec,
                                               const ReplicaRecord& replica) {
  const auto amounts = slice_terms(spec);
  if (!amounts) return std::nullopt;
  return api::SliceRequest{.request_id = replica.request_id,
                           .name = replica.slice,
                           .amounts = *amounts,
                           .lifetime = Lifetime::until_deleted,
                           .account = object.account,
                           .labels = labels_of(object, replica),
                           .owner_uid = object.owner_uid};
}

api::SliceChange slice_change(const objects::ServiceSpec& spec) {
  const auto request = slice_terms(spec);
  invariant(request.has_value(), "only a slice has a size");
  return {.memory_bytes = request->memory_bytes, .share_bp = request->share_bp};
}

ProgramStart program_start(const Object& object, const objects::ServiceSpec& spec,
                           const ReplicaRecord& replica, uint32_t attempt) {
  const auto terms = objects::terms_of(spec);
  invariant(terms.has_value(), "a stored spec was checked");
  ProgramStart start{.slice = replica.slice,
                     .node = spec.gpu ? replica.node : "",
                     .attempt = attempt,
                     .owner_uid = object.owner_uid,
                     .command = spec.run.command,
                     .env = spec.run.env,
                     .workdir = spec.run.workdir,
                     .grace_seconds = spec.termination_grace_period_seconds,
                     .cpu_limit_milli = terms->cpu_limit_milli,
                     .memory_limit_bytes = terms->memory_limit_bytes,
                     .image = spec.run.image,
                     .args = spec.run.args};
  if (start.image.empty())
    std::ranges::move(std::exchange(start.args, {}), std::back_inserter(start.command));
  if (replica.port != 0) start.env["PORT"] = fmt::format("{}", replica.port);
  // The program of a StatefulSet reads its ordinal from its host name.
  if (start.slice == fmt::format("{}-{}", object.key.name, replica.replica))
    start.env.try_emplace("HOSTNAME", start.slice);
  start.env["CARVE_SERVICE"] = object.key.name;
  start.env["CARVE_REPLICA"] = fmt::format("{}", workload::ordinal(replica.replica));
  start.env["CARVE_REVISION"] = fmt::format("{}", replica.revision);
  return start;
}

}  // namespace carve::controller
