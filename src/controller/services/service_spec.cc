#include "controller/services/service_spec.h"

#include "controller/objects/service_form.h"
#include "core/invariant.h"
#include "fronts/service_terms.h"
#include "wire/api/json.h"

namespace carve::controller {

objects::ServiceSpec stored_spec(const std::string& json) {
  auto spec = api::read<objects::ServiceSpec>(json, api::Reading::lenient);
  invariant(spec.has_value(), "a stored spec was written by this program");
  return std::move(*spec);
}

bool differ_in_size_alone(const objects::ServiceSpec& a, const objects::ServiceSpec& b) {
  if (!a.gpu || !b.gpu || a.gpu->exclusive || b.gpu->exclusive) return false;
  // A share that appears or goes changes what is enforced, so the slice is a new one.
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
          .rollout = {.max_surge = spec.update.max_surge,
                      .max_unavailable = spec.update.max_unavailable,
                      .progress_deadline = spec.update.progress_deadline_seconds * workload::second_ns},
          .grace = spec.termination_grace_period_seconds * workload::second_ns,
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
  auto request = slice_terms(spec);
  if (!request) return std::nullopt;
  request->request_id = replica.request_id;
  request->name = replica.slice;
  request->lifetime = Lifetime::until_deleted;
  request->account = object.account;
  request->labels = labels_of(object, replica);
  request->owner_uid = object.owner_uid;
  return request;
}

api::SliceChange slice_change(const objects::ServiceSpec& spec) {
  const auto request = slice_terms(spec);
  invariant(request.has_value(), "only a slice has a size");
  return {.memory_bytes = request->memory_bytes, .share_bp = request->share_bp};
}

ProgramStart program_start(const Object& object, const objects::ServiceSpec& spec,
                           const ReplicaRecord& replica, uint32_t attempt) {
  const auto terms = fronts::terms_of(spec);
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
                     .image = spec.run.image};
  if (replica.port != 0) start.env["PORT"] = fmt::format("{}", replica.port);
  start.env["CARVE_SERVICE"] = object.key.name;
  start.env["CARVE_REPLICA"] = fmt::format("{}", workload::ordinal(replica.replica));
  start.env["CARVE_REVISION"] = fmt::format("{}", replica.revision);
  return start;
}

}  // namespace carve::controller
