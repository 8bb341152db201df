// The part of ClusterReconciler for queues and jobs: looking for Kueue, and their steps and statuses.
#include <algorithm>

#include "controller/kubernetes/batch_jobs.h"
#include "controller/kubernetes/cluster_reconciler.h"
#include "controller/kubernetes/custom_resources.h"
#include "controller/kubernetes/kueue_status.h"
#include "controller/kubernetes/made_kinds.h"
#include "controller/kubernetes/step_texts.h"
#include "core/utc.h"
#include "os/log.h"

namespace carve::controller {

using api::Json;
using kubernetes::ApiAnswer;

namespace {

constexpr kubernetes::Nanoseconds retry_ns = 5 * kubernetes::second_ns;

// Kinds that are watched only while Kueue is there: nothing else needs them.
constexpr const char* own_kinds[] = {batch_job,       cluster_queue,  local_queue,
                                     resource_flavor, priority_class, kueue_cohort};

ClusterProblem kueue_missing() {
  return {"KueueMissing",
          fmt::format(
              "queues and jobs need Kueue, whose API {} this cluster does not have; install it with 'kubectl "
              "apply --server-side -f "
              "https://github.com/kubernetes-sigs/kueue/releases/download/v0.17.0/manifests.yaml'",
              kueue_version)};
}

// Returns the status with a condition in addition to its own fields.
template <class Status>
Json status_with(const Status& status, const Object& object, objects::Condition condition, int64_t now_ns) {
  Json out = api::parse(api::write(status)).value_or(Json::object());
  out.update(conditions_json(single_condition(object.status.json(), std::move(condition), now_ns)));
  return out;
}

}  // namespace

// Asks whether the API server has Kueue's API: at the start, while it does not, and while a watch of it fails.
void ClusterReconciler::discover() {
  const auto failing =
      std::ranges::find_if(kueue_watches_, [](const auto& watch) { return !watch->problem().empty(); });
  if (failing != kueue_watches_.end())
    os::log::warning("queues and jobs are not followed: {}", (*failing)->problem());
  else if (kueue_ == Kueue::present) {
    next_discovery_ = client_.after(discovery_interval_ns, [this] { discover(); });
    return;
  }
  discovery_ = client_.send(
      {.target = fmt::format("/apis/{}", kueue_version), .deadline_ns = write_deadline_ns},
      [this](const ApiAnswer& answer) {
        const auto ended = std::move(discovery_);
        const bool is_known = answer.status == 200 || answer.status == 404;
        if (is_known) found_kueue(answer.status == 200);
        next_discovery_ = client_.after(is_known ? discovery_interval_ns : retry_ns, [this] { discover(); });
      });
}

void ClusterReconciler::found_kueue(bool is_present) {
  const Kueue now = is_present ? Kueue::present : Kueue::missing;
  if (kueue_ == now) return;
  kueue_ = now;
  if (is_present) {
    os::log::info("this cluster has {}; queues and jobs are run", kueue_version);
    for (const char* kind : own_kinds)
      watch_made(kueue_watches_, kind, fmt::format("{}={}", managed_by_label, managed_by_carve));
    watch_made(kueue_watches_, kueue_workload, "");
    watch_nodes();
  } else {
    os::log::info("this cluster does not have {}; queues and jobs are only kept", kueue_version);
    kueue_watches_.clear();
    for (const char* kind : own_kinds) state_.replace(kind, {});
    state_.replace(kueue_workload, {});
  }
  mark_queued();
}

void ClusterReconciler::watch_nodes() {
  const auto mark_if = [this](bool has_changed) {
    if (has_changed) mark_queued();
  };
  kueue_watches_.push_back(std::make_unique<kubernetes::ObjectWatch>(
      client_,
      kubernetes::Selection{.path = "/api/v1/nodes",
                            .label_selector = "",
                            .field_selector = "",
                            .is_whole = true,
                            .keeps_documents = true},
      kubernetes::ListWatch::Sink{
          .replaced =
              [this](const auto& all) {
                capacity_.replace(all);
                mark_queued();
              },
          .changed = [this, mark_if](const auto& one) { mark_if(capacity_.put(one)); },
          .removed = [this, mark_if](const auto& one) { mark_if(capacity_.remove(one)); }},
      settings_.seed + watches_.size() + kueue_watches_.size()));
}

bool ClusterReconciler::is_kueue_complete() const {
  return kueue_ == Kueue::present &&
         std::ranges::all_of(kueue_watches_, [](const auto& watch) { return watch->is_complete(); });
}

void ClusterReconciler::mark_queued() {
  std::vector<std::string> uids = state_.uids();
  std::erase_if(uids, [this](const std::string& uid) {
    const objects::Kind kind = state_.find(uid)->object.key.kind;
    return kind != objects::Kind::queue && kind != objects::Kind::job;
  });
  mark(uids);
}

bool ClusterReconciler::step_made(const std::string& uid,
                                  const Result<OwnedObjects, api::FieldErrors>& wanted) {
  if (!wanted) {
    set_problem(uid, {"Invalid", message_of(wanted.error())});
    return false;
  }
  for (const Json& one : wanted->objects)
    if (step_object(uid, one)) return true;
  Work& work = work_[uid];
  if (work.retry_at > client_.now()) return false;
  if (step_unwanted(uid, wanted->objects)) return true;
  work.problem = {};
  work.retry_at = work.wait_ns = 0;
  return false;
}

bool ClusterReconciler::step_queue(const std::string& uid, const CustomObject& custom) {
  if (kueue_ == Kueue::missing) {
    set_problem(uid, kueue_missing());
    return false;
  }
  return step_made(uid, objects_of_queue(custom));
}

Result<OwnedObjects, api::FieldErrors> ClusterReconciler::objects_of_queue(const CustomObject& custom) const {
  auto out = queue_objects(custom.object, state_.use_of(custom));
  const objects::QueueSpec& spec = queue_spec(custom.object);
  const auto queues = state_.queues_of(spec.pool);
  if (!out || queues.empty()) return out;
  const DeviceAmounts capacity = capacity_.of(spec.pool);
  out->objects.push_back(cohort_object(spec.pool, queues, capacity));
  if (!spec.quota && spec.gpu != QueueGpu::none && capacity == DeviceAmounts())
    out->warnings.emplace_back(
        "no node of its pool reports devices, so a queue without spec.quota can only borrow from other "
        "queues");
  return out;
}

bool ClusterReconciler::step_job(const std::string& uid, const CustomObject& custom) {
  const objects::JobSpec spec = job_spec(custom.object);
  if (!is_run_by_cluster(spec)) return false;
  if (is_finished(custom.object.status.as<objects::JobStatus>())) return step_removal(uid, custom);
  if (kueue_ == Kueue::missing) {
    set_problem(uid, kueue_missing());
    return false;
  }
  if (spec.cancelled) return step_made(uid, OwnedObjects());
  const CustomObject* queue = state_.queue(spec.queue);
  if (queue == nullptr || !queue->errors.empty()) {
    set_problem(uid,
                {"NoSuchQueue", fmt::format("there is no queue '{}'; an operator can create one with 'carve "
                                            "apply'",
                                            spec.queue)});
    return false;
  }
  const auto wanted = job_objects(custom.object, queue->object);
  const Json* made = wanted ? state_.owned_like(uid, wanted->objects.front()) : nullptr;
  if (made != nullptr && mark_of(*made) != programs_mark(spec)) {
    set_problem(uid, {"Immutable",
                      "the job was already submitted and is immutable; delete it and apply the document "
                      "again, or use another name"});
    return false;
  }
  return step_made(uid, wanted);
}

// Removes a job when it has been finished for spec.ttlSecondsAfterFinished.
bool ClusterReconciler::step_removal(const std::string& uid, const CustomObject& custom) {
  const Object& object = custom.object;
  set_problem(uid, {});
  const auto finished = parse_utc("finishedAt", object.status.as<objects::JobStatus>().finished_at);
  if (!finished) return false;
  const int64_t left = *finished +
                       int64_t{job_spec(object).ttl_seconds_after_finished} * kubernetes::second_ns -
                       settings_.utc_ns();
  if (left > 0) {
    work_[uid].due_at = client_.now() + left;
    schedule();
    return false;
  }
  const Json options{{"apiVersion", "v1"},
                     {"kind", "DeleteOptions"},
                     {"propagationPolicy", "Background"},
                     {"preconditions", {{"uid", uid}}}};
  return send(uid,
              {.method = "DELETE",
               .target = custom_resource_path(object.key.kind, object.key.namespace_, object.key.name),
               .body = dumped(options)},
              [this, uid](const ApiAnswer& answer) {
                work_[uid].due_at = 0;
                if (!answer.is_success() && answer.status != 404)
                  return failed(uid, {"DeleteFailed", message_of(answer)});
                mark(state_.remove_custom(uid));
              });
}

// A Job is not applied: a second request for the same one must fail.
bool ClusterReconciler::create(const std::string& uid, const Json& object) {
  return send(uid,
              {.method = "POST",
               .target = path_of(object, /*with_name=*/false) + "?fieldManager=" + managed_by_carve,
               .body = dumped(object)},
              [this, uid, object](const ApiAnswer& answer) {
                if (answer.is_success()) return take_made(uid, object, answer);
                failed(uid, {answer.status == 409 ? "NameTaken" : "CreateFailed", message_of(answer)});
              });
}

Json ClusterReconciler::queue_status_of(const std::string& uid, const CustomObject& custom) const {
  const auto wanted = objects_of_queue(custom);
  const Json name{{"kind", cluster_queue}, {"metadata", {{"name", custom.object.key.name}}}};
  QueueView view{.object = custom.object,
                 .cluster_queue = state_.owned_like(uid, name),
                 .warnings = wanted ? wanted->warnings : std::vector<std::string>()};
  if (const auto work = work_.find(uid); work != work_.end()) view.problem = work->second.problem;
  for (const std::string& job : state_.jobs_of(custom.object.key.name)) {
    const auto& status = state_.find(job)->object.status.as<objects::JobStatus>();
    if (status.phase == JobPhase::starting || status.phase == JobPhase::running) view.slices += status.slices;
  }
  return status_with(queue_status(view), custom.object, queue_condition(view), settings_.utc_ns());
}

Json ClusterReconciler::job_status_of(const std::string& uid, const CustomObject& custom) const {
  const Object& object = custom.object;
  const CustomObject* queue = state_.queue(job_spec(object).queue);
  const auto pods = queue == nullptr
                        ? Result<engines::EnginePods, api::FieldErrors>(tl::unexpected(api::FieldErrors()))
                        : pods_of_submitted(object, queue->object.key.name, queue_spec(queue->object), {});
  const Json name{{"kind", batch_job},
                  {"metadata", {{"name", object.key.name}, {"namespace", object.key.namespace_}}}};
  JobView view{.object = object,
               .job = state_.owned_like(uid, name),
               .workload = state_.workload(uid),
               .pods = state_.pods_of_job(uid),
               .position = state_.position(uid),
               .need = pods ? &pods->need : nullptr,
               .warnings = pods ? pods->warnings : std::vector<std::string>()};
  if (const auto work = work_.find(uid); work != work_.end()) view.problem = work->second.problem;
  const objects::JobStatus status = batch_job_status(view, settings_.utc_ns());
  return status_with(status, object, job_condition(view, status), settings_.utc_ns());
}

}  // namespace carve::controller
