#include "controller/api/job_routes.h"

#include <unistd.h>

#include "controller/api/object_routes.h"
#include "controller/api/planning.h"
#include "controller/nodes/node_rules.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/job_form.h"
#include "fronts/engines/engine_programs.h"
#include "fronts/render/job_manifests.h"
#include "os/clock.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using K = FailureKind;
using objects::Kind;

DeviceSizes sizes_of(const Call& call, const std::string& pool) {
  const PoolCapacity capacity = SliceForecast(call.context.objects).capacity(pool);
  return {.context_bytes = capacity.context_bytes, .largest_bytes = capacity.largest_device_bytes};
}

bool is_unfinished(const Object& job) {
  const auto status = api::read<objects::JobStatus>(job.status, api::Reading::lenient);
  return status && status->finished_at.empty();
}

http::Response refuse_queue(const Call& call, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& queue : call.context.objects.list(Kind::queue)) names.push_back(queue->key.name);
  const std::string word = name.substr(0, 80);
  return refuse(api::FieldErrors{
      {.field = "spec.queue",
       .value = word,
       .sentence =
           names.empty()
               ? fmt::format("spec.queue: there is no queue '{}'; an operator makes one: carve apply", word)
               : fmt::format("spec.queue: there is no queue '{}'; there are {}", word,
                             fmt::join(names, ", "))}});
}

std::optional<http::Response> refused_queue(const Call& call, const Submission& submission) {
  const Object wanted{.key = queue_key(submission.metadata.name), .spec = submission.spec};
  const objects::QueueSpec spec = queue_spec(wanted);
  if (!spec.pool.empty() && !call.context.objects.find(pool_key(spec.pool)))
    return refuse(api::FieldErrors{
        {.field = "spec.pool",
         .value = spec.pool.substr(0, 80),
         .sentence = fmt::format("spec.pool: there is no pool '{}'; leave it out for any node",
                                 spec.pool.substr(0, 80))}});
  const auto present = call.context.objects.find(wanted.key);
  if (!present) return std::nullopt;
  const std::string before = queue_spec(*present).gpu;
  if (before == spec.gpu) return std::nullopt;
  const char* is = before == "gpu"    ? "a GPU queue"
                   : before == "mgpu" ? "an mGPU queue"
                                      : "a queue without GPU";
  return refuse_as("carve:immutable",
                   fmt::format("queue {} is {}: GPU and mGPU exclude each other; make another queue",
                               submission.metadata.name, is));
}

// A submission's job: the object, its queue and its pods.
struct SubmittedJob {
  objects::JobSpec spec;
  ObjectRegistry::Pointer queue;
  fronts::EnginePods pods;
};

Result<SubmittedJob, http::Response> submitted(const Call& call, const Submission& submission) {
  SubmittedJob out{.spec = job_spec({.spec = submission.spec}), .queue = nullptr, .pods = {}};
  out.queue = call.context.objects.find(queue_key(out.spec.queue));
  if (!out.queue) return tl::unexpected(refuse_queue(call, out.spec.queue));
  const objects::QueueSpec queue = queue_spec(*out.queue);
  auto pods = pods_of_submitted(out.spec, out.spec.queue, queue, sizes_of(call, queue.pool));
  if (!pods) return tl::unexpected(refuse(std::move(pods.error())));
  out.pods = std::move(*pods);
  return out;
}

std::optional<http::Response> refused_job(const Call& call, const Submission& submission) {
  const auto present =
      call.context.objects.find({Kind::job, submission.metadata.namespace_, submission.metadata.name});
  if (present && !submission.metadata.name.empty()) {
    if (present->spec == submission.spec) return std::nullopt;
    return refuse_as("carve:immutable",
                     fmt::format("{} was submitted and does not change; cancel it and submit another one",
                                 text(present->key)));
  }
  if (call.context.views.waiting_jobs() >= workload::max_waiting_jobs)
    return refuse(
        K::resource_exhausted,
        fmt::format("{} jobs wait, the most that are kept; submit again later", workload::max_waiting_jobs));
  auto job = submitted(call, submission);
  if (!job) return std::move(job.error());
  return std::nullopt;
}

// Returns how many of the job's slices fit on the nodes that run now, without any other slice.
uint32_t room_for(const Call& call, const std::string& pool, const workload::JobNeed& need) {
  SliceForecast empty(call.context.objects);
  for (const auto& node : call.context.objects.list(Kind::node)) empty.replace_slices(node->key.name, {});
  const api::SliceRequest request = slice_terms(need);
  uint32_t room = 0;
  while (room < need.slices && empty.place({.pool = pool}, request)) ++room;
  return room;
}

fronts::EnginePlaces places() {
  return {
      .scripts = "Carve's folder", .job_folder = {}, .secret = {}, .has_file = [](const std::string& path) {
        return access(path.c_str(), X_OK) == 0;
      }};
}

}  // namespace

std::optional<http::Response> refused_by_queues(const Call& call,
                                                const std::vector<Submission>& submissions) {
  for (const Submission& submission : submissions) {
    std::optional<http::Response> refused;
    if (submission.kind == Kind::queue) refused = refused_queue(call, submission);
    if (submission.kind == Kind::job) refused = refused_job(call, submission);
    if (refused) return refused;
  }
  return std::nullopt;
}

Outcome<Object> planned_queue(const Call& call, const Submission& submission) {
  if (!call.caller.may_operate())
    return failure(K::permission_denied, "queues are changed by operators; {} is none", call.caller.text());
  const ObjectKey key = queue_key(submission.metadata.name);
  Object object;
  if (const auto present = call.context.objects.find(key)) {
    object = *present;
  } else {
    object.key = key;
    object.owner_uid = call.caller.uid().value_or(0);
    object.created_ns = call.context.views.now_ns();
    object.uid = fmt::format("{:x}-{}", object.created_ns, key.name);
    object.status = api::write(objects::QueueStatus());
  }
  object.labels = submission.metadata.labels;
  object.annotations = submission.metadata.annotations;
  object.spec = submission.spec;
  return object;
}

// A job without a name gets one that no other job had: the number is the registry's next version.
Outcome<Object> planned_job(const Call& call, const Submission& submission) {
  const ObjectKey key{Kind::job, submission.metadata.namespace_, submission.metadata.name};
  if (const auto present = call.context.objects.find(key)) return *present;
  const auto owner = owner_of(call, {.account = submission.metadata.account});
  if (!owner) return tl::unexpected(owner.error());
  const auto job = submitted(call, submission);
  if (!job) return failure(K::failed_precondition, "queue {} has changed; submit again", key.name);
  Object object;
  object.key = key;
  if (key.name.empty())
    object.key.name = fmt::format("{}-{}", job->spec.engine, call.context.objects.version() + 1);
  object.owner_uid = owner->uid;
  object.account = owner->account;
  object.created_ns = call.context.views.now_ns();
  object.uid = fmt::format("{:x}-{}", object.created_ns, object.key.name);
  object.labels = submission.metadata.labels;
  object.annotations = submission.metadata.annotations;
  object.spec = submission.spec;
  objects::JobStatus status{.phase = "Queued",
                            .submitted_at = os::rfc3339(object.created_ns, os::Decimals::milliseconds),
                            .gpu = slice_text(job->pods.need),
                            .slices = job->pods.need.slices,
                            .memory_bytes = job->pods.need.memory.count,
                            .share_bp = job->pods.need.share.basis_points,
                            .derived = fronts::derived_parameters(job->spec, job->pods, places()),
                            .warnings = job->pods.warnings};
  for (std::string& sentence : fronts::replaced_parameters(job->spec, places()))
    status.warnings.push_back(std::move(sentence));
  if (const uint32_t room = room_for(call, queue_spec(*job->queue).pool, job->pods.need);
      room > 0 && room < job->pods.need.slices)  // 0: no node runs now, so nothing is known.
    status.warnings.push_back(fmt::format(
        "the devices that run now have room for {} such slices if they are empty, and the job has "
        "{}: it waits until there are more",
        room, job->pods.need.slices));
  object.status = api::write(status);
  return object;
}

std::vector<std::string> job_warnings(const Object& job) {
  const auto status = api::read<objects::JobStatus>(job.status, api::Reading::lenient);
  return status ? status->warnings : std::vector<std::string>();
}

http::Response delete_queue(const Call& call) {
  if (!call.caller.may_operate())
    return refuse(K::permission_denied,
                  fmt::format("queues are changed by operators; {} is none", call.caller.text()));
  const auto queue = call.context.objects.find(queue_key(call.names[0]));
  if (!queue) return refuse(K::not_found, fmt::format("there is no queue {}", call.names[0].substr(0, 80)));
  size_t unfinished = 0;
  for (const auto& job : call.context.objects.list(Kind::job))
    unfinished += job_spec(*job).queue == call.names[0] && is_unfinished(*job) ? 1 : 0;
  if (unfinished != 0)
    return refuse(K::failed_precondition,
                  fmt::format("queue {} has {} unfinished job{}; cancel them, or wait for their ends",
                              call.names[0], unfinished, unfinished == 1 ? "" : "s"));
  if (const auto removed = call.context.objects.remove(queue->key); !removed) return refuse(removed.error());
  return shown(call, *queue);
}

http::Response cancel_job(const Call& call) {
  const Call of_jobs{call.context, call.request, call.caller, Kind::job, call.names};
  const auto object = changeable_object(of_jobs);
  if (!object) return refuse(object.error());
  if (!is_unfinished(**object))
    return refuse(K::failed_precondition, fmt::format("{} has ended", text((*object)->key)));
  const auto updated = call.context.objects.update((*object)->key, [](Object& present) -> Outcome<void> {
    objects::JobSpec spec = job_spec(present);
    spec.cancelled = true;
    present.spec = api::write(spec);
    return {};
  });
  if (!updated) return refuse(updated.error());
  return shown(of_jobs, **updated);
}

http::Response read_job_parameters(const Call& call) {
  auto read = fronts::read_parameters(call.request.body);
  if (!read) return refuse(std::move(read.error()));
  return document(
      api::JobParameters{.parameters = std::move(read->values), .warnings = std::move(read->warnings)});
}

Result<fronts::Manifests, http::Response> rendered_job(const Call& call, const Submission& submission) {
  auto job = submitted(call, submission);
  if (!job) return tl::unexpected(std::move(job.error()));
  return fronts::job_manifests(submission.metadata, job->spec, job->pods);
}

Object with_position(const Call& call, const Object& object) {
  if (object.key.kind != Kind::job) return object;
  const auto position = call.context.views.job_position(object.uid);
  if (!position) return object;
  auto status = api::read<objects::JobStatus>(object.status, api::Reading::lenient);
  if (!status || status->phase != "Queued") return object;
  Object out = object;
  status->position = position->position;
  status->reason = position->reason;
  out.status = api::write(*status);
  return out;
}

}  // namespace carve::controller
