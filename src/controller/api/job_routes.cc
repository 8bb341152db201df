#include "controller/api/job_routes.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "controller/api/job_names.h"
#include "controller/api/object_routes.h"
#include "controller/api/planning.h"
#include "controller/api/query.h"
#include "controller/nodes/node_rules.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/job_form.h"
#include "core/invariant.h"
#include "fronts/engines/engine_programs.h"
#include "fronts/render/job_manifests.h"
#include "os/clock.h"
#include "wire/api/json.h"
#include "wire/api/json_value.h"

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

// Returns the queue as it is when the documents of the request are kept, or null.
ObjectRegistry::Pointer queue_of(const Call& call, const std::string& name) {
  const Submission* const applied = document_beside(call, Kind::queue, name);
  if (applied == nullptr) return call.context.objects.find(queue_key(name));
  return std::make_shared<const Object>(Object{.key = queue_key(name), .spec = applied->spec});
}

std::optional<http::Response> refused_queue(const Call& call, const Submission& submission) {
  const Object wanted{.key = queue_key(submission.metadata.name), .spec = submission.spec};
  const objects::QueueSpec spec = queue_spec(wanted);
  if (!spec.pool.empty() && !document_beside(call, Kind::pool, spec.pool) &&
      !call.context.objects.find(pool_key(spec.pool)))
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
  const Object object{.key = {submission.kind, "default", submission.metadata.name}, .spec = submission.spec};
  SubmittedJob out{.spec = job_spec(object), .queue = nullptr, .pods = {}};
  out.queue = queue_of(call, out.spec.queue);
  if (!out.queue) return tl::unexpected(refuse_queue(call, out.spec.queue));
  const objects::QueueSpec queue = queue_spec(*out.queue);
  auto pods = pods_of_submitted(object, out.spec.queue, queue, sizes_of(call, queue.pool));
  if (!pods) return tl::unexpected(refuse(std::move(pods.error())));
  out.pods = std::move(*pods);
  return out;
}

// Returns the field of the spec that differs and cannot change, with its new value; empty: there is none. The
// paths are those of a JSON patch (RFC 6902): "/workers/0/mgpuMemory".
std::pair<std::string, std::string> fixed_field_that_differs(const Object& present,
                                                             const Submission& submission) {
  const auto before = api::parse(present.spec), after = api::parse(submission.spec);
  if (!before || !after) return {};
  for (const api::Json& step : api::Json::diff(*before, *after)) {
    std::string field = "spec";
    std::string last;
    std::istringstream words(step["path"].get<std::string>().substr(1));
    for (std::string word; std::getline(words, word, '/'); last = word) {
      if (word == "-") continue;  // One more behind the last one of a list.
      field += word.find_first_not_of("0123456789") == std::string::npos ? "[" + word + "]" : "." + word;
    }
    const bool may_change = last == "replicas" || field == "spec.priority";
    if (present.key.kind == Kind::ray_cluster && may_change) continue;
    const bool is_shown = step.contains("value") && step["value"].is_primitive();
    return {field, is_shown ? step["value"].dump() : ""};
  }
  return {};
}

// The spec of a job does not change. Of a cluster the numbers of workers do, and its priority.
std::optional<http::Response> refused_change(const Call& call, const Object& present,
                                             const Submission& submission) {
  for (const auto& allowed : {check_change(call, present), check_account(present, submission.metadata)})
    if (!allowed) return refuse(allowed.error());
  if (present.spec == submission.spec) return std::nullopt;
  if (const auto [field, value] = fixed_field_that_differs(present, submission); !field.empty()) {
    const char* const rule =
        present.key.kind == Kind::job
            ? "{}: {}{} was submitted and does not change; delete it, or give the new one another name"
            : "{}: {}of {} only spec.workers[].replicas and spec.priority change; delete it and apply it "
              "again, or apply one with another name";
    const std::string given = value.empty() ? "" : value.substr(0, max_shown_bytes) + ": ";
    return refuse_as("carve:immutable", fmt::format(fmt::runtime(rule), field, given, text(present.key)));
  }
  auto cluster = submitted(call, submission);
  if (!cluster) return std::move(cluster.error());
  return std::nullopt;
}

// `waiting`: the jobs that wait, and the new ones before it in the same documents.
std::optional<http::Response> refused_job(const Call& call, const Submission& submission, size_t& waiting) {
  const ObjectKey key{submission.kind, submission.metadata.namespace_, submission.metadata.name};
  const auto present = call.context.objects.find(key);
  if (present && !submission.metadata.name.empty()) return refused_change(call, *present, submission);
  if (auto refused = refused_name(call, key)) return refused;
  if (waiting++ >= workload::max_waiting_jobs)
    return refuse(
        K::resource_exhausted,
        fmt::format("{} jobs wait, the most that are kept; submit again later", workload::max_waiting_jobs));
  auto job = submitted(call, submission);
  if (!job) return std::move(job.error());
  if (job->spec.engine_home.empty() && job->spec.engine != carve::text(fronts::Engine::custom)) {
    const bool is_spark = job->spec.engine == carve::text(fronts::Engine::spark);
    return refuse(api::FieldErrors{
        {.field = "spec.engineHome",
         .value = "",
         .sentence = is_spark ? "spec.engineHome: name the folder of Spark, as in /opt/spark"
                              : "spec.engineHome: name the folder of the program ray, as in /opt/ray/bin"}});
  }
  return std::nullopt;
}

// How many of a job's slices fit on the nodes that run now, without any other slice.
struct Room {
  uint32_t slices = 0;
  bool has_nodes = true;  // Some node runs; else nothing is known.
};
Room room_for(const Call& call, const std::string& pool, const workload::JobNeed& need) {
  SliceForecast empty(call.context.objects);
  for (const auto& node : call.context.objects.list(Kind::node)) empty.replace_slices(node->key.name, {});
  Room room;
  for (const workload::JobNeed& part : workload::equal_parts(need)) {
    const api::SliceRequest request = slice_terms(part);
    for (uint32_t i = 0; i < part.slices; ++i, ++room.slices)
      if (const auto place = empty.place({.pool = pool}, request); !place) {
        room.has_nodes = room.slices > 0 || place.error().kind == K::insufficient_capacity;
        return room;
      }
  }
  return room;
}

fronts::EnginePlaces places() {
  return {
      .scripts = "Carve's folder", .job_folder = {}, .secret = {}, .has_file = [](const std::string& path) {
        return access(path.c_str(), X_OK) == 0;
      }};
}

std::vector<std::string> warnings_of(const Call& call, const SubmittedJob& job) {
  std::vector<std::string> out = job.pods.warnings;
  std::ranges::move(fronts::replaced_parameters(job.spec, places()), std::back_inserter(out));
  const uint64_t slices = workload::slice_count(job.pods.need);
  const Room room = room_for(call, queue_spec(*job.queue).pool, job.pods.need);
  if (!room.has_nodes || room.slices >= slices) return out;
  if (room.slices == 0)
    out.push_back(fmt::format(
        "no node that runs now has room for a slice of {}, even if it is empty: the job waits until "
        "one has, and the jobs behind it with it",
        slice_text(job.pods.need)));
  else
    out.push_back(fmt::format(
        "the devices that run now have room for {} such slices if they are empty, and the job has "
        "{}: it waits until there are more",
        room.slices, slices));
  return out;
}

void set_slices(objects::JobStatus& status, const SubmittedJob& job) {
  status.gpu = slice_text(job.pods.need);
  status.slices = static_cast<uint32_t>(workload::slice_count(job.pods.need));
  status.memory_bytes = job.pods.need.memory.count;
  status.share_bp = job.pods.need.share.basis_points;
}

// Returns the object with the document's labels and annotations; of a cluster, with its numbers of workers.
Outcome<Object> planned_change(const Call& call, const Object& present, const Submission& submission) {
  Object out = present;
  out.labels = submission.metadata.labels;
  out.annotations = submission.metadata.annotations;
  out.spec = submission.spec;
  if (present.spec == submission.spec) return out;
  const auto cluster = submitted(call, submission);
  if (!cluster)
    return failure(K::failed_precondition, "the queue of {} has changed; apply it again", text(present.key));
  auto status =
      api::read<objects::JobStatus>(present.status, api::Reading::lenient).value_or(objects::JobStatus());
  set_slices(status, *cluster);
  status.warnings = warnings_of(call, *cluster);
  out.status = api::write(status);
  return out;
}

}  // namespace

std::optional<http::Response> refused_by_queues(const Call& call,
                                                const std::vector<Submission>& submissions) {
  size_t waiting = call.context.views.waiting_jobs();
  for (const Submission& submission : submissions) {
    std::optional<http::Response> refused;
    if (submission.kind == Kind::queue) refused = refused_queue(call, submission);
    if (is_queued(submission.kind)) refused = refused_job(call, submission, waiting);
    if (refused) return refused;
  }
  return std::nullopt;
}

Outcome<Object> planned_job(const Call& call, const Submission& submission) {
  const ObjectKey key{submission.kind, submission.metadata.namespace_, submission.metadata.name};
  if (const auto present = call.context.objects.find(key)) return planned_change(call, *present, submission);
  const auto owner = owner_of(call, {.account = submission.metadata.account});
  if (!owner) return tl::unexpected(owner.error());
  const auto job = submitted(call, submission);
  if (!job) return failure(K::failed_precondition, "the queue of {} has changed; submit again", text(key));
  Object object;
  object.key = key;
  if (key.name.empty()) object.key.name = new_name(call, submission, job->spec.engine);
  object.owner_uid = owner->uid;
  object.account = owner->account;
  object.created_ns = call.context.views.now_ns();
  object.uid = fmt::format("{:x}-{}", object.created_ns, object.key.name);
  object.labels = submission.metadata.labels;
  object.annotations = submission.metadata.annotations;
  object.spec = submission.spec;
  objects::JobStatus status{.phase = "Queued",
                            .submitted_at = os::rfc3339(object.created_ns, os::Decimals::milliseconds),
                            .derived = fronts::derived_parameters(job->spec, job->pods),
                            .warnings = warnings_of(call, *job)};
  set_slices(status, *job);
  object.status = api::write(status);
  return object;
}

std::vector<std::string> job_warnings(const Object& job) {
  const auto status = api::read<objects::JobStatus>(job.status, api::Reading::lenient);
  return status ? status->warnings : std::vector<std::string>();
}

void set_planned_status(Object& present, const Object& planned) {
  auto status = api::read<objects::JobStatus>(present.status, api::Reading::lenient);
  const auto wanted = api::read<objects::JobStatus>(planned.status, api::Reading::lenient);
  if (!status || !wanted) return;
  status->gpu = wanted->gpu;
  status->slices = wanted->slices;
  status->memory_bytes = wanted->memory_bytes;
  status->share_bp = wanted->share_bp;
  status->warnings = wanted->warnings;
  present.status = api::write(*status);
}

http::Response delete_queue(const Call& call) {
  if (const auto allowed = check_operator(call, Kind::queue); !allowed) return refuse(allowed.error());
  const auto queue = call.context.objects.find(queue_key(call.names[0]));
  if (!queue) return refuse(K::not_found, fmt::format("there is no queue {}", call.names[0].substr(0, 80)));
  if (const auto is_expected = check_version(call, *queue); !is_expected) return refuse(is_expected.error());
  const auto unfinished = [&](Kind kind) {
    const auto objects = call.context.objects.list(kind);
    return std::ranges::count_if(objects, [&](const auto& object) {
      return job_spec(*object).queue == call.names[0] && is_unfinished(*object);
    });
  };
  if (const auto jobs = unfinished(Kind::job); jobs != 0)
    return refuse(K::failed_precondition,
                  fmt::format("queue {} has {} unfinished job{}; cancel them, or wait for their ends",
                              call.names[0], jobs, jobs == 1 ? "" : "s"));
  if (const auto clusters = unfinished(Kind::ray_cluster); clusters != 0)
    return refuse(K::failed_precondition,
                  fmt::format("queue {} has {} Ray cluster{}; delete {} first", call.names[0], clusters,
                              clusters == 1 ? "" : "s", clusters == 1 ? "it" : "them"));
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
  if (submission.kind == Kind::job) return fronts::job_manifests(submission.metadata, job->spec, job->pods);
  const auto cluster = api::read<objects::RayClusterSpec>(submission.spec, api::Reading::lenient);
  invariant(cluster.has_value(), "it was read from the document");
  return fronts::cluster_manifests(submission.metadata, *cluster, job->pods);
}

Object with_present_status(const Call& call, const Object& object) {
  if (!is_queued(object.key.kind)) return object;
  const auto position = call.context.views.job_position(object.uid);
  const auto hours = call.context.views.job_hours(object.uid);
  if (!position && !hours) return object;
  auto status = api::read<objects::JobStatus>(object.status, api::Reading::lenient);
  if (!status) return object;
  if (position && (status->phase == "Queued" || object.key.kind == Kind::ray_cluster)) {
    status->position = position->position;
    status->reason = position->reason;
  }
  if (hours) {
    status->gpu_hours = hours->gpu_hours;
    status->unpriced_seconds = hours->unpriced_seconds;
  }
  Object out = object;
  out.status = api::write(*status);
  return out;
}

}  // namespace carve::controller
