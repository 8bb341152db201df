#include "controller/api/job_routes.h"

#include <algorithm>
#include <sstream>

#include "controller/api/job_names.h"
#include "controller/api/object_routes.h"
#include "controller/api/planning.h"
#include "controller/api/query.h"
#include "controller/nodes/empty_fit.h"
#include "controller/nodes/node_rules.h"
#include "controller/nodes/slice_forecast.h"
#include "controller/objects/job_form.h"
#include "engines/engine_programs.h"
#include "objects/rules/visible_check.h"
#include "os/clock.h"
#include "render/job_manifests.h"
#include "wire/api/json.h"
#include "wire/api/json_value.h"

namespace carve::controller {
namespace {

using objects::Kind;

constexpr size_t max_forecast_slices = 256;  // Rows of a dry run's response.

DeviceSizes sizes_of(const Call& call, const std::string& pool) {
  const PoolCapacity capacity = SliceForecast(call.context.objects).capacity(pool);
  return {.context_bytes = capacity.context_bytes, .largest_bytes = capacity.largest_device_bytes};
}

bool is_unfinished(const Object& job) {
  return job.status.is_readable() && job.status.as<objects::JobStatus>().finished_at.empty();
}

http::Response refuse_queue(const Call& call, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& queue : call.context.objects.list(Kind::queue)) names.push_back(queue->key.name);
  const std::string word = name.substr(0, 80);
  return refuse(api::FieldErrors{
      {.field = "spec.queue",
       .value = word,
       .message =
           names.empty()
               ? fmt::format(
                     "spec.queue: there is no queue '{}'; an operator can create one with carve apply", word)
               : fmt::format("spec.queue: there is no queue '{}'; the queues are {}", word,
                             fmt::join(names, ", "))}});
}

// Returns the queue as it will be after the request's documents are stored, or null.
ObjectRegistry::Pointer queue_of(const Call& call, const std::string& name) {
  const Submission* const applied = document_beside(call, Kind::queue, name);
  if (applied == nullptr) return call.context.objects.find(queue_key(name));
  return std::make_shared<const Object>(Object{.key = queue_key(name), .spec = applied->spec});
}

std::optional<http::Response> refused_queue(const Call& call, const Submission& submission) {
  const auto& spec = submission.spec.as<objects::QueueSpec>();
  if (!spec.pool.empty() && !document_beside(call, Kind::pool, spec.pool) &&
      !call.context.objects.find(pool_key(spec.pool)))
    return refuse(api::FieldErrors{
        {.field = "spec.pool",
         .value = spec.pool.substr(0, 80),
         .message = fmt::format("spec.pool: there is no pool '{}'; leave the field out to use any node",
                                spec.pool.substr(0, 80))}});
  const auto present = call.context.objects.find(queue_key(submission.metadata.name));
  if (!present) return std::nullopt;
  const Word<QueueGpu> before = queue_spec(*present).gpu;
  if (before == spec.gpu) return std::nullopt;
  const char* is = before == QueueGpu::gpu    ? "a GPU queue"
                   : before == QueueGpu::mgpu ? "an mGPU queue"
                                              : "a queue without GPU";
  return refuse_as("carve:immutable",
                   fmt::format("queue {} is {}, which cannot be changed; create another queue",
                               submission.metadata.name, is));
}

// A submission's job: the object, its queue and its pods.
struct SubmittedJob {
  objects::JobSpec spec;
  ObjectRegistry::Pointer queue;
  engines::EnginePods pods;
};

Result<SubmittedJob, http::Response> submitted(const Call& call, const Submission& submission) {
  const Object object{.key = {submission.kind, "default", submission.metadata.name}, .spec = submission.spec};
  SubmittedJob out{.spec = job_spec(object), .queue = nullptr, .pods = {}};
  out.queue = queue_of(call, out.spec.queue);
  if (!out.queue) return tl::unexpected(refuse_queue(call, out.spec.queue));
  const objects::QueueSpec& queue = queue_spec(*out.queue);
  auto pods = pods_of_submitted(object, out.spec.queue, queue, sizes_of(call, queue.pool));
  if (!pods) return tl::unexpected(refuse(std::move(pods.error())));
  out.pods = std::move(*pods);
  const std::vector<workload::SliceGroup>& groups = out.pods.need.groups;
  const uint32_t devices = groups.empty() ? 0 : groups.front().amounts.device_count();
  if (const auto problem = objects::visible_devices_problem(out.spec.run.env, devices); !problem.empty()) {
    const std::string field = submission.kind == Kind::ray_cluster ? "spec.env.CUDA_VISIBLE_DEVICES"
                                                                   : "spec.run.env.CUDA_VISIBLE_DEVICES";
    return tl::unexpected(refuse(api::FieldErrors{{.field = field,
                                                   .value = out.spec.run.env.at("CUDA_VISIBLE_DEVICES"),
                                                   .message = fmt::format("{}: {}", field, problem)}}));
  }
  return out;
}

// Returns the first changed immutable field of the spec with its new value; empty if there is none. The paths
// are JSON patch paths (RFC 6902): "/workers/0/mgpuMemory".
std::pair<std::string, std::string> fixed_field_that_differs(const Object& present,
                                                             const Submission& submission) {
  const auto before = api::parse(present.spec.json()), after = api::parse(submission.spec.json());
  if (!before || !after) return {};
  for (const api::Json& step : api::Json::diff(*before, *after)) {
    std::string field = "spec";
    std::string last;
    std::istringstream words(step["path"].get<std::string>().substr(1));
    for (std::string word; std::getline(words, word, '/'); last = word) {
      if (word == "-") continue;  // Means the element after the last one of a list.
      field += word.find_first_not_of("0123456789") == std::string::npos ? "[" + word + "]" : "." + word;
    }
    const bool may_change = last == "replicas" || field == "spec.priority";
    if (present.key.kind == Kind::ray_cluster && may_change) continue;
    const bool is_shown = step.contains("value") && step["value"].is_primitive();
    return {field, is_shown ? step["value"].dump() : ""};
  }
  return {};
}

// Returns a rejection if the job would wait forever and block the jobs behind it.
std::optional<http::Response> refused_size(const Call& call, const SubmittedJob& job) {
  const auto fits = check_fits_empty(SliceForecast(call.context.objects).emptied(),
                                     queue_spec(*job.queue).pool, job.pods.need);
  if (!fits) return refuse(fits.error());
  return std::nullopt;
}

// Rejects changes of immutable fields. A job's spec is immutable; a cluster may change its numbers of workers
// and its priority.
std::optional<http::Response> refused_change(const Call& call, const Object& present,
                                             const Submission& submission) {
  for (const auto& allowed : {check_change(call, present), check_account(present, submission.metadata)})
    if (!allowed) return refuse(allowed.error());
  if (present.spec == submission.spec) return std::nullopt;
  if (const auto [field, value] = fixed_field_that_differs(present, submission); !field.empty()) {
    const char* const rule = present.key.kind == Kind::job
                                 ? "{}: {}{} was already submitted and is immutable; delete that job, or "
                                   "submit the new one with another name"
                                 : "{}: {}only spec.workers[].replicas and spec.priority of {} can be "
                                   "changed; delete the cluster and apply the document again, or use another "
                                   "name";
    const std::string given = value.empty() ? "" : value.substr(0, max_shown_bytes) + ": ";
    return refuse_as("carve:immutable", fmt::format(fmt::runtime(rule), field, given, text(present.key)));
  }
  auto cluster = submitted(call, submission);
  if (!cluster) return std::move(cluster.error());
  return refused_size(call, *cluster);
}

// Kubernetes runs only containers; the programs of this machine's nodes are local ones.
std::optional<http::Response> refused_image(const Call& call, const objects::JobSpec& spec) {
  const std::string& image = spec.run.image;
  if (call.context.runs_pods != image.empty()) return std::nullopt;
  const std::string message =
      image.empty() ? "spec.run.image: is required, because Kubernetes runs only containers"
                    : fmt::format(
                          "spec.run.image: '{}': a job must run a local program; leave the image out "
                          "and set spec.run.command, or run the job in a cluster",
                          image.substr(0, 80));
  return refuse(
      api::FieldErrors{{.field = "spec.run.image", .value = image.substr(0, 80), .message = message}});
}

// `waiting` is the number of waiting jobs, including new jobs that precede this one in the same documents.
std::optional<http::Response> refused_job(const Call& call, const Submission& submission, size_t& waiting) {
  const ObjectKey key{submission.kind, submission.metadata.namespace_, submission.metadata.name};
  const auto present = call.context.objects.find(key);
  if (present && !submission.metadata.name.empty()) return refused_change(call, *present, submission);
  if (auto refused = refused_name(call, key)) return refused;
  if (submission.kind == Kind::job)
    if (auto refused = refused_image(call, submission.spec.as<objects::JobSpec>())) return refused;
  if (waiting++ >= workload::max_waiting_jobs)
    return refuse(FailureKind::resource_exhausted,
                  fmt::format("{} jobs are already waiting, which is the limit; submit again later",
                              workload::max_waiting_jobs));
  auto job = submitted(call, submission);
  if (!job) return std::move(job.error());
  if (job->spec.engine_home.empty() && job->spec.engine != JobEngine::custom) {
    const bool is_spark = job->spec.engine == JobEngine::spark;
    return refuse(api::FieldErrors{
        {.field = "spec.engineHome",
         .value = "",
         .message = is_spark ? "spec.engineHome: is required; set it to Spark's folder, such as /opt/spark"
                             : "spec.engineHome: is required; set it to the folder of the program ray, such "
                               "as /opt/ray/bin"}});
  }
  return refused_size(call, *job);
}

std::vector<std::string> warnings_of(const SubmittedJob& job) {
  std::vector<std::string> out = job.pods.warnings;
  std::ranges::move(engines::replaced_parameters(job.spec), std::back_inserter(out));
  return out;
}

void set_slices(objects::JobStatus& status, const SubmittedJob& job) {
  status.gpu = slice_text(job.pods.need);
  status.slices = static_cast<uint32_t>(workload::slice_count(job.pods.need));
  const workload::Amount amount = workload::first_amount(job.pods.need);
  status.memory_bytes = amount.memory.count;
  status.share_bp = static_cast<uint32_t>(amount.compute_bp);
}

// Returns the object with the document's labels and annotations and, for a cluster, its numbers of workers.
Outcome<Object> planned_change(const Call& call, const Object& present, const Submission& submission) {
  Object out = present;
  out.labels = submission.metadata.labels;
  out.annotations = submission.metadata.annotations;
  out.spec = submission.spec;
  if (present.spec == submission.spec) return out;
  const auto cluster = submitted(call, submission);
  if (!cluster)
    return failure(FailureKind::failed_precondition,
                   "the queue of {} changed during the request; apply the document again", text(present.key));
  auto status = present.status.as<objects::JobStatus>();
  set_slices(status, *cluster);
  status.warnings = warnings_of(*cluster);
  out.status = std::move(status);
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
  if (auto starts = check_start(call, owner->uid); !starts) return tl::unexpected(starts.error());
  const auto job = submitted(call, submission);
  if (!job)
    return failure(FailureKind::failed_precondition,
                   "the queue of {} changed during the request; submit again", text(key));
  Object object;
  object.key = key;
  if (key.name.empty()) object.key.name = new_name(call, submission, text(job->spec.engine));
  object.owner_uid = owner->uid;
  object.account = owner->account;
  object.created_ns = call.context.views.now_ns();
  object.uid = fmt::format("{:x}-{}", object.created_ns, object.key.name);
  object.labels = submission.metadata.labels;
  object.annotations = submission.metadata.annotations;
  object.spec = submission.spec;
  objects::JobStatus status{.phase = JobPhase::queued,
                            .submitted_at = os::rfc3339(object.created_ns, os::Decimals::milliseconds),
                            .derived = engines::derived_parameters(job->spec, job->pods),
                            .warnings = warnings_of(*job)};
  set_slices(status, *job);
  object.status = std::move(status);
  return object;
}

std::vector<std::string> job_warnings(const Object& job) {
  return job.status.as<objects::JobStatus>().warnings;
}

void set_planned_status(Object& present, const Object& planned) {
  if (!present.status.is_readable()) return;
  auto status = present.status.as<objects::JobStatus>();
  const auto& wanted = planned.status.as<objects::JobStatus>();
  status.gpu = wanted.gpu;
  status.slices = wanted.slices;
  status.memory_bytes = wanted.memory_bytes;
  status.share_bp = wanted.share_bp;
  status.warnings = wanted.warnings;
  present.status = std::move(status);
}

Outcome<Object> planned_queue(const Call& call, const Submission& submission) {
  auto planned = operators_object(call, submission);
  if (planned && planned->status == TypedJson()) planned->status = objects::QueueStatus();
  return planned;
}

Outcome<void> check_queue_deletion(const Call& call, const std::string& name) {
  const auto unfinished = [&](Kind kind) {
    const auto objects = call.context.objects.list(kind);
    return std::ranges::count_if(objects, [&](const auto& object) {
      return job_spec(*object).queue == name && is_unfinished(*object);
    });
  };
  if (const auto jobs = unfinished(Kind::job); jobs != 0)
    return failure(FailureKind::failed_precondition,
                   "queue {} has {} unfinished job{}; cancel them, or wait until they end", name, jobs,
                   jobs == 1 ? "" : "s");
  if (const auto clusters = unfinished(Kind::ray_cluster); clusters != 0)
    return failure(FailureKind::failed_precondition, "queue {} has {} Ray cluster{}; delete {} first", name,
                   clusters, clusters == 1 ? "" : "s", clusters == 1 ? "it" : "them");
  return {};
}

http::Response cancel_job(const Call& call) {
  const auto object = changeable_object(call);
  if (!object) return refuse(object.error());
  if (!is_unfinished(**object))
    return refuse(FailureKind::failed_precondition, fmt::format("{} has ended", text((*object)->key)));
  const auto updated = call.context.objects.update((*object)->key, [](Object& present) -> Outcome<void> {
    objects::JobSpec spec = job_spec(present);
    spec.cancelled = true;
    present.spec = std::move(spec);
    return {};
  });
  if (!updated) return refuse(updated.error());
  return shown(call, **updated);
}

http::Response read_job_parameters(const Call& call) {
  auto read = engines::read_parameters(call.request.body);
  if (!read) return refuse(std::move(read.error()));
  return document(
      api::JobParameters{.parameters = std::move(read->values), .warnings = std::move(read->warnings)});
}

std::vector<api::ReplicaPlacement> forecast_slices(const Call& call, SliceForecast& forecast,
                                                   const Submission& submission) {
  const auto job = submitted(call, submission);
  if (!job) return {};
  std::vector<api::ReplicaPlacement> out;
  const NodeChoice choice{.pool = queue_spec(*job->queue).pool};
  for (const workload::SliceGroup& group : job->pods.need.groups)
    for (uint32_t i = 0; i < group.slices && out.size() < max_forecast_slices; ++i) {
      api::ReplicaPlacement& row = out.emplace_back();
      row.replica = static_cast<uint32_t>(out.size() - 1);
      const auto place = forecast.place(choice, group.amounts);
      if (!place) {
        row.message = place.error().message;
        return out;
      }
      row.node = place->node;
      row.devices = place->devices;
      for (const Bytes memory : place->memory) row.memory_bytes.push_back(memory.count);
    }
  return out;
}

Result<render::Manifests, http::Response> rendered_job(const Call& call, const Submission& submission) {
  auto job = submitted(call, submission);
  if (!job) return tl::unexpected(std::move(job.error()));
  render::Manifests out;
  if (submission.kind == Kind::job) {
    out = render::job_manifests(submission.metadata, job->spec, job->pods);
  } else {
    out = render::cluster_manifests(submission.metadata, submission.spec.as<objects::RayClusterSpec>(),
                                    job->pods);
  }
  std::vector<std::string> of_document = job->pods.warnings;
  std::ranges::move(engines::replaced_parameters(job->spec), std::back_inserter(of_document));
  out.warnings.insert(out.warnings.begin(), of_document.begin(), of_document.end());
  return out;
}

Object with_present_status(const Views& views, const Object& object) {
  if (!is_queued(object.key.kind)) return object;
  const auto position = views.job_position(object.uid);
  const auto hours = views.job_hours(object.uid);
  if (!position && !hours) return object;
  if (!object.status.is_readable()) return object;
  auto status = object.status.as<objects::JobStatus>();
  if (position && (status.phase == JobPhase::queued || object.key.kind == Kind::ray_cluster)) {
    status.position = position->position;
    status.reason = position->reason;
  }
  if (hours) {
    status.gpu_hours = hours->gpu_hours;
    status.unpriced_seconds = hours->unpriced_seconds;
  }
  Object out = object;
  out.status = std::move(status);
  return out;
}

}  // namespace carve::controller
