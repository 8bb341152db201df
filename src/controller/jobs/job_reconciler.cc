#include "controller/jobs/job_reconciler.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "controller/jobs/job_status.h"
#include "controller/services/service_status.h"
#include "core/invariant.h"
#include "objects/node_object.h"
#include "os/log.h"

namespace carve::controller {
namespace {

using Action = workload::JobAction;
using workload::JobEnd;
using workload::PodId;
using workload::PodProgram;
using workload::ProgramState;

constexpr Ns start_patience = 5 * workload::second_ns;  // Time for a supervisor to begin.
constexpr Ns decision_interval = workload::second_ns;   // Used while nothing changes.

PodId id_of(const PodRecord& record) { return {static_cast<PodRole>(record.role), record.index}; }

// A program that was stopped on request has no result, whatever its exit status. A program of a job that
// stays never ends by itself.
bool has_failed(const workload::Job& job, const PodRecord& record, const ObservedProgram& program) {
  return program.state == ProgramState::exited &&
         (job.stays || program.is_lost || program.exit_status != 0 || record.terminated_ns != 0);
}

bool has_request(const PodRecord& record) { return !record.request_id.empty(); }

void forget_slice(PodRecord& record) {
  record.request_id.clear();
  record.node.clear();
  record.is_granted = false;
}

api::SliceRequest slice_request(const Object& job, const JobForm& form, const PodRecord& record) {
  api::SliceRequest request{.request_id = record.request_id,
                            .amounts = workload::amounts_of_slice(form.pods.need, record.index)};
  request.name = record.program;
  request.lifetime = Lifetime::until_deleted;
  request.account = job.account;
  request.owner_uid = job.owner_uid;
  request.labels = job.labels;
  request.labels["carve.dev/kind"] = objects::text_of(job.key.kind).singular;
  request.labels["carve.dev/name"] = job.key.name;
  request.labels["carve.dev/namespace"] = job.key.namespace_;
  request.labels["carve.dev/queue"] = form.spec.queue;
  request.labels["carve.dev/role"] = carve::text(id_of(record).role);
  request.labels["carve.dev/index"] = fmt::format("{}", record.index);
  return request;
}

}  // namespace

template <class T>
bool JobReconciler::done(Turn& turn, const Outcome<T>& outcome) {
  if (outcome) return true;
  if (turn.problem.empty()) turn.problem = outcome.error().message;
  os::log::debug("{}: {}", text(turn.object->key), outcome.error().message);
  return false;
}

std::vector<ObjectRegistry::Pointer> queued_objects(const ObjectRegistry& objects) {
  std::vector<ObjectRegistry::Pointer> out;
  for (const objects::Kind kind : queued_kinds)
    std::ranges::move(objects.list(kind), std::back_inserter(out));
  return out;
}

bool JobReconciler::reconcile(Ns now) {
  serve_jobs(now);
  admit(now);
  return changed_;
}

void JobReconciler::serve_jobs(Ns now) {
  changed_ = is_busy_ = false;
  known_nodes_.reset();
  find_drained_nodes();
  ++turns_;
  for (const auto& object : queued_objects(objects_))
    if (CachedJob* known = known_of(object)) serve(object, *known, now);
  std::erase_if(known_, [&](const auto& entry) { return entry.second.seen_in != turns_; });
}

bool JobReconciler::admit(Ns now) {
  const bool is_due =
      changed_ || objects_.version() != decided_version_ || now - decided_at_ >= decision_interval;
  if (is_due) decide_queues(now);
  return is_due;
}

// Returns the job's cached state, or null if its queue no longer exists.
JobReconciler::CachedJob* JobReconciler::known_of(const ObjectRegistry::Pointer& object) {
  CachedJob& known = known_[object->uid];
  known.seen_in = turns_;
  if (known.generation == object->generation && known.form) return &known;
  known.generation = object->generation;
  const auto queue = objects_.find(queue_key(job_spec(*object).queue));
  if (!queue) return nullptr;
  if (!known_nodes_) known_nodes_.emplace(objects_);
  const PoolCapacity pool = known_nodes_->capacity(queue_spec(*queue).pool);
  known.form = job_form(*object, *queue,
                        {.context_bytes = pool.context_bytes, .largest_bytes = pool.largest_device_bytes});
  if (!known.form) os::log::error(cause_of(*object), "{}: {}", text(object->key), known.form.error());
  return known.form ? &known : nullptr;
}

// Returns whether the job needs no action now because it is waiting, or has ended and is kept.
bool JobReconciler::is_idle(const Object& object, const CachedJob& known, Ns now) const {
  if (object.is_ending) return false;
  const JobRecord* const record = records_.find(object.uid);
  if (known.is_over) return workload::after(record->finished_ns, known.form->job.ttl) > now;
  const bool waits = record == nullptr || (record->admitted_ns == 0 && record->finished_ns == 0);
  return waits && !known.form->spec.cancelled && !records_.has_pods(object.uid);
}

void JobReconciler::serve(const ObjectRegistry::Pointer& object, CachedJob& known, Ns now) {
  if (is_idle(*object, known, now)) return;
  Turn turn{.object = object, .known = known, .record = records_.job(object->uid), .job = known.form->job};
  turn.job.cancelled = known.form->spec.cancelled || object->is_ending;
  if (object->is_ending) turn.job.ttl = 0;
  bool is_removed = false;
  return_from_drained_nodes(turn);
  settle_workers(turn, now);
  turn.job.retries += turn.record.returns;
  if (settle_requests(turn) && observe(turn, now)) {
    end_growth(turn);
    known.is_over = turn.observed.finished && std::ranges::none_of(turn.observed.pods, [](const auto& pod) {
                      return pod.has_slice || pod.program == PodProgram::running;
                    });
    for (const Action& action : workload::actions(turn.job, turn.observed, now)) {
      is_removed |= action.kind == Action::Kind::remove;
      carry_out(turn, action, now);
      changed_ = true;
    }
  }
  is_busy_ |= !known.is_over;
  if (!is_removed) write_status(turn);
}

void JobReconciler::find_drained_nodes() {
  drained_nodes_.clear();
  for (const auto& node : objects_.list(objects::Kind::node))
    if (node->spec.as<objects::NodeSpec>().draining) drained_nodes_.insert(node->key.name);
}

// Returns the job to its queue if a node with one of its slices is drained.
void JobReconciler::return_from_drained_nodes(Turn& turn) {
  if (turn.record.admitted_ns == 0 || turn.record.finished_ns != 0 || turn.record.is_returning) return;
  for (const PodRecord& pod : records_.pods(turn.record.uid)) {
    if (!pod.is_granted || !drained_nodes_.contains(pod.node)) continue;
    turn.record.is_returning = true;
    ++turn.record.returns;
    turn.known.why_requeued = fmt::format("node {} is drained", pod.node);
    done(turn, records_.write(turn.record));
    return;
  }
}

// Gives a cluster its admitted workers: fewer than desired while further workers wait in the queue. If a node
// rejects one of the further workers, all of them return to the queue together.
void JobReconciler::settle_workers(Turn& turn, Ns now) {
  if (!turn.job.stays || turn.record.admitted_ns == 0) return;
  JobRecord& record = turn.record;
  if (turn.known.refusal && !record.workers_before.empty()) {
    record.workers = std::exchange(record.workers_before, "");
    turn.known.refusal.reset();
    turn.known.retry_at = workload::after(now, workload::backoff_ns(++turn.known.refusals));
  }
  const std::vector<uint32_t> wanted = workload::group_counts(turn.known.form->pods.need);
  const std::vector<uint32_t> admitted = admitted_workers(record, wanted);
  record.workers = workers_text(admitted);
  if (admitted == wanted)
    record.grows_ns = 0;
  else if (record.grows_ns == 0)
    record.grows_ns = now;
  done(turn, records_.write(record));
  turn.job.pods = cluster_pods(turn.known.form->pods.need, admitted);
}

// The workers that were admitted last become permanent once all of them have started.
void JobReconciler::end_growth(Turn& turn) {
  if (turn.record.workers_before.empty()) return;
  for (const workload::PodSpec& pod : turn.job.pods) {
    const auto seen = std::ranges::find(turn.observed.pods, pod.id, &workload::Pod::id);
    if (seen == turn.observed.pods.end() || seen->attempt == 0) return;
  }
  turn.record.workers_before.clear();
  turn.known.refusals = 0;
  done(turn, records_.write(turn.record));
}

// Repeats the requests whose response was lost. Returns false if it is still unknown whether a slice was
// granted.
bool JobReconciler::settle_requests(Turn& turn) {
  for (PodRecord record : records_.pods(turn.record.uid)) {
    if (!has_request(record) || record.is_granted) continue;
    if (!record.node.empty()) {
      const auto granted = effects_.grant(slice_request(*turn.object, *turn.known.form, record), record.node);
      if (!granted && granted.error().kind == FailureKind::unavailable) return done(turn, granted);
      record.is_granted = granted.has_value();
    }
    if (!record.is_granted) forget_slice(record);
    if (!done(turn, records_.write(record))) return false;
  }
  return true;
}

bool JobReconciler::observe(Turn& turn, Ns now) {
  if (turn.record.admitted_ns != 0) turn.observed.admitted_at = std::min(turn.record.admitted_ns, now);
  if (turn.record.finished_ns != 0)
    turn.observed.finished = {.end = static_cast<JobEnd>(turn.record.end),
                              .at = std::min(turn.record.finished_ns, now)};
  turn.observed.refusal = turn.known.refusal;
  turn.observed.returns = turn.record.is_returning;
  for (PodRecord record : records_.pods(turn.record.uid))
    if (!observe_pod(turn, record, now)) return false;
  return true;
}

bool JobReconciler::observe_pod(Turn& turn, PodRecord& record, Ns now) {
  auto program = effects_.program(record.program);
  if (!done(turn, program)) return false;
  if (record.is_granted) {
    // A slice outlives its agent, so the slices of a node whose agent does not respond count as live.
    if (const auto slices = effects_.slices(record.node); slices && !slices->contains(record.program)) {
      forget_slice(record);
      if (program->state == ProgramState::running) done(turn, effects_.kill(record.program));
    } else if (slices) {
      const ObservedSlice& slice = slices->at(record.program);
      record.devices.clear();
      for (const ObservedPart& part : slice.parts)
        record.devices += (record.devices.empty() ? "" : " ") + part.device;
      program->exit = exit_of(*program, &slice);
    }
    if (!done(turn, records_.write(record))) return false;
  }
  const PodId id = id_of(record);
  workload::Pod pod{
      .id = id, .has_slice = record.is_granted, .attempt = program->attempt, .failures = record.failures};
  switch (program->state) {
    case ProgramState::not_started: break;
    case ProgramState::running:
      pod.program = PodProgram::running;
      pod.program_since = program->started_at;
      break;
    case ProgramState::exited:
      pod.program = program->is_lost ? PodProgram::lost : PodProgram::exited;
      pod.program_since = program->ended_at;
      break;
  }
  const auto asked = turn.known.asked_starts.find(record.program);
  const bool is_asked = asked != turn.known.asked_starts.end() && asked->second.first > program->attempt &&
                        now < asked->second.second + start_patience;
  if (is_asked) {
    pod.program = PodProgram::running;
    pod.program_since = asked->second.second;
    pod.attempt = asked->second.first;
  } else if (program->attempt == record.attempt && has_failed(turn.job, record, *program)) {
    ++pod.failures;
  }
  if (record.terminated_ns != 0) pod.terminated_at = std::min(record.terminated_ns, now);
  turn.observed.pods.push_back(pod);
  turn.pods[id] = record;
  turn.programs[id] = *program;
  return true;
}

PodRecord JobReconciler::record_of(const Turn& turn, PodId id) const {
  const auto found = turn.pods.find(id);
  if (found != turn.pods.end()) return found->second;
  return {.program = pod_name(turn.object->key.name, id),
          .uid = turn.record.uid,
          .role = static_cast<uint32_t>(id.role),
          .index = id.index};
}

void JobReconciler::carry_out(Turn& turn, const Action& action, Ns now) {
  using Kind = Action::Kind;
  switch (action.kind) {
    case Kind::requeue: return requeue(turn, now);
    case Kind::finish: return finish(turn, action.end, now);
    case Kind::remove: return remove(turn);
    default: break;
  }
  PodRecord record = record_of(turn, action.pod);
  switch (action.kind) {
    case Kind::create_slice: return create_slice(turn, std::move(record), now);
    case Kind::start: return start(turn, std::move(record), action.attempt, now);
    case Kind::terminate:
      if (!done(turn, effects_.terminate(record.program))) return;
      record.terminated_ns = now;
      done(turn, records_.write(record));
      return;
    case Kind::kill: done(turn, effects_.kill(record.program)); return;
    case Kind::forget: return forget_pod(turn, record);
    default: done(turn, effects_.end_slice(record.node, record.program)); return;
  }
}

bool JobReconciler::adopt(const std::string& program, const ProgramOwner& owner) {
  const auto kind = objects::parse_kind(owner.kind);
  if (!kind || !is_queued(*kind)) return false;
  const auto object = objects_.find({*kind, owner.name_space, owner.name});
  if (!object || object->uid != owner.uid || object->is_ending) return false;
  const JobRecord* const job = records_.find(object->uid);
  if (job == nullptr || job->admitted_ns == 0 || job->finished_ns != 0) return false;
  const auto seen = effects_.program(program);
  if (!seen || (seen->attempt == 0 && owner.node.empty())) return false;
  invariant(!records_.has_pod(program), "an orphan has no record");
  return records_
      .write(PodRecord{.program = program,
                       .uid = object->uid,
                       .role = owner.role,
                       .index = owner.index,
                       .request_id = owner.request_id,
                       .node = owner.node,
                       .is_granted = !owner.node.empty(),
                       .attempt = seen->attempt})
      .has_value();
}

bool JobReconciler::is_taken(Turn& turn, const PodRecord& record) {
  if (!is_taken_ || !is_taken_(record.program)) return false;
  done(turn, Outcome<void>(failure(FailureKind::unavailable,
                                   "program {} without a database record is still running; the pod is "
                                   "started when that program has ended",
                                   record.program)));
  return true;
}

// One rejection per turn is enough, because all slices are ended after it.
void JobReconciler::create_slice(Turn& turn, PodRecord record, Ns now) {
  if (turn.known.refusal && turn.known.refusal->at == now) return;
  if (is_taken(turn, record)) return;
  record.request_id = fmt::format("{}-{}-{}-{}", record.uid, record.role, record.index, now);
  if (!done(turn, records_.write(record))) return;
  const auto granted = grant(turn, record);
  if (granted) {
    turn.known.refusal.reset();
    return;
  }
  done(turn, granted);
  if (granted.error().kind == FailureKind::unavailable && has_request(record))
    return;  // The slice may have been granted.
  const unsigned times = turn.known.refusal ? turn.known.refusal->times : 0;
  turn.known.refusal = workload::JobObserved::Refusal{.at = now, .times = times + 1};
  turn.known.why_requeued = granted.error().message;
}

// Requests the slice from one node after another. The record names the node before the request is sent, so no
// other node gets a request while this one may have granted the slice.
Outcome<void> JobReconciler::grant(Turn& turn, PodRecord& record) {
  const api::SliceRequest request = slice_request(*turn.object, *turn.known.form, record);
  Outcome<void> last = failure(FailureKind::unavailable, "no node is available for the slice");
  const auto nodes = effects_.nodes_to_ask({.pool = turn.known.form->pool}, request.amounts);
  if (!nodes) last = tl::unexpected(nodes.error());
  for (const std::string& node : nodes ? *nodes : std::vector<std::string>()) {
    record.node = node;
    if (auto written = records_.write(record); !written) return written;
    if (auto kept = effects_.keep_owner(record.program, owner_of(*turn.object, record)); !kept) return kept;
    last = effects_.grant(request, node);
    if (last) {
      record.is_granted = true;
      return records_.write(record);
    }
    if (last.error().kind == FailureKind::unavailable) return last;
  }
  forget_slice(record);
  if (auto written = records_.write(record); !written) return written;
  return last;
}

engines::EnginePlaces JobReconciler::places_of(const Turn& turn) const {
  return {.scripts = scripts_,
          .job_folder = "/tmp/carve-" + turn.record.uid.substr(0, turn.record.uid.find('-')),
          .port = turn.record.port,
          .secret = turn.record.secret};
}

void JobReconciler::start(Turn& turn, PodRecord record, unsigned attempt, Ns now) {
  const PodId id = id_of(record);
  const auto seen = std::ranges::find(turn.observed.pods, id, &workload::Pod::id);
  if (is_taken(turn, record)) return;
  record.failures = seen != turn.observed.pods.end() ? seen->failures : 0;
  record.attempt = attempt;
  record.terminated_ns = 0;
  if (!done(turn, records_.write(record))) return;
  if (!done(turn, effects_.keep_owner(record.program, owner_of(*turn.object, record)))) return;
  const JobForm& form = *turn.known.form;
  engines::PodProgram program =
      engines::pod_program(form.spec, turn.object->key.name, form.pods, id, places_of(turn));
  ProgramStart start{.slice = record.program,
                     .node = record.is_granted ? record.node : "",
                     .attempt = attempt,
                     .owner_uid = turn.object->owner_uid,
                     .command = std::move(program.command),
                     .env = form.spec.run.env,
                     .workdir = form.spec.run.workdir,
                     .cleanup = std::move(program.cleanup)};
  for (auto& [name, value] : program.env) start.env[name] = std::move(value);
  if (const auto asked = effects_.start(start); !done(turn, asked)) {
    // The program cannot be started, so the attempt has failed.
    if (asked.error().kind == FailureKind::unavailable) return;
    ++record.failures;
    turn.known.why_not_started = asked.error().message;
    done(turn, records_.write(record));
    return;
  }
  turn.known.asked_starts[record.program] = {attempt, now};
  os::log::info(cause_of(*turn.object), "{}: {} {} started, attempt {}", text(turn.object->key),
                carve::text(id.role), id.index, attempt);
}

void JobReconciler::requeue(Turn& turn, Ns now) {
  const bool returned = turn.record.is_returning;
  turn.record.admitted_ns = 0;
  turn.record.is_returning = false;
  turn.record.grows_ns = 0;
  turn.record.workers.clear();
  turn.record.workers_before.clear();
  if (!done(turn, records_.write(turn.record))) return;
  turn.known.refusal.reset();
  turn.known.requeued_at = now;
  turn.known.refusals += returned ? 0 : 1;
  turn.known.retry_at = workload::after(now, workload::backoff_ns(turn.known.refusals));
  os::log::info(cause_of(*turn.object), "{}: returned to queue {}: {}", text(turn.object->key),
                turn.known.form->spec.queue, turn.known.why_requeued);
}

void JobReconciler::finish(Turn& turn, JobEnd end, Ns now) {
  turn.record.finished_ns = now;
  turn.record.end = static_cast<uint32_t>(end);
  if (!done(turn, records_.write(turn.record))) return;
  turn.observed.finished = {.end = end, .at = now};
  os::log::info(cause_of(*turn.object), "{}: finished", text(turn.object->key));
}

void JobReconciler::forget_pod(Turn& turn, const PodRecord& record) {
  effects_.forget_program(record.program);
  turn.known.asked_starts.erase(record.program);
  done(turn, records_.remove(record));
}

void JobReconciler::remove(Turn& turn) {
  for (const PodRecord& record : records_.pods(turn.record.uid)) effects_.forget_program(record.program);
  if (!done(turn, objects_.remove(turn.object->key))) return;
  records_.forget(turn.record.uid);
  os::log::info(cause_of(*turn.object), "{}: removed", text(turn.object->key));
}

void JobReconciler::write_status(Turn& turn) {
  const TypedJson status = job_status({.object = *turn.object,
                                       .form = *turn.known.form,
                                       .record = turn.record,
                                       .job = turn.job,
                                       .observed = turn.observed,
                                       .pods = turn.pods,
                                       .programs = turn.programs,
                                       .problem = turn.problem,
                                       .why_requeued = turn.known.why_requeued,
                                       .why_not_started = turn.known.why_not_started},
                                      turn.object->status.as<objects::JobStatus>());
  if (status == turn.object->status) return;
  changed_ = true;
  const auto written = objects_.update(turn.object->key, [&](Object& object) -> Outcome<void> {
    if (object.uid == turn.object->uid) object.status = status;
    return {};
  });
  if (!written && written.error().kind != FailureKind::not_found)
    os::log::error(cause_of(*turn.object), "{}", written.error().message);
}

}  // namespace carve::controller
