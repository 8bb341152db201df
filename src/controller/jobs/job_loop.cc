#include "controller/jobs/job_loop.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "controller/jobs/job_status.h"
#include "core/invariant.h"
#include "os/log.h"
#include "wire/api/json.h"
#include "wire/objects/node_object.h"

namespace carve::controller {
namespace {

using K = FailureKind;
using Action = workload::JobAction;
using workload::JobEnd;
using workload::PodId;
using workload::PodProgram;
using workload::PodRole;
using workload::ProgramState;

constexpr Ns start_patience = 5 * workload::second_ns;  // For a supervisor to begin.
constexpr Ns decision_interval = workload::second_ns;   // While nothing changes.

PodId id_of(const PodRecord& record) { return {static_cast<PodRole>(record.role), record.index}; }

// A program that was told to end has no result, whatever its exit status. A program of a job that stays never
// ends by itself.
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
  api::SliceRequest request = slice_terms(workload::need_of_slice(form.pods.need, record.index));
  request.request_id = record.request_id;
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
bool JobLoop::done(Pass& pass, const Outcome<T>& outcome) {
  if (outcome) return true;
  if (pass.problem.empty()) pass.problem = outcome.error().sentence;
  os::log::debug("{}: {}", text(pass.object->key), outcome.error().sentence);
  return false;
}

std::vector<ObjectRegistry::Pointer> queued_objects(const ObjectRegistry& objects) {
  std::vector<ObjectRegistry::Pointer> out;
  for (const objects::Kind kind : queued_kinds)
    std::ranges::move(objects.list(kind), std::back_inserter(out));
  return out;
}

bool JobLoop::turn(Ns now) {
  serve_jobs(now);
  admit(now);
  return changed_;
}

void JobLoop::serve_jobs(Ns now) {
  changed_ = is_busy_ = false;
  known_nodes_.reset();
  find_drained_nodes();
  ++turns_;
  for (const auto& object : queued_objects(objects_))
    if (Known* known = known_of(object)) serve(object, *known, now);
  std::erase_if(known_, [&](const auto& entry) { return entry.second.seen_in != turns_; });
}

bool JobLoop::admit(Ns now) {
  const bool is_due =
      changed_ || objects_.version() != decided_version_ || now - decided_at_ >= decision_interval;
  if (is_due) decide_queues(now);
  return is_due;
}

// Returns what is known of the job; null if its queue is gone.
JobLoop::Known* JobLoop::known_of(const ObjectRegistry::Pointer& object) {
  Known& known = known_[object->uid];
  known.seen_in = turns_;
  if (known.generation == object->generation && known.form) return &known;
  known.generation = object->generation;
  const auto queue = objects_.find(queue_key(job_spec(*object).queue));
  if (!queue) return nullptr;
  if (!known_nodes_) known_nodes_.emplace(objects_);
  const PoolCapacity pool = known_nodes_->capacity(queue_spec(*queue).pool);
  known.form = job_form(*object, *queue,
                        {.context_bytes = pool.context_bytes, .largest_bytes = pool.largest_device_bytes});
  if (!known.form) os::log::error("{}: {}", text(object->key), known.form.error());
  return known.form ? &known : nullptr;
}

// Returns whether nothing is to be done for the job now: it waits, or it is over and kept.
bool JobLoop::is_idle(const Object& object, const Known& known, Ns now) const {
  if (object.is_ending) return false;
  const JobRecord* const record = records_.find(object.uid);
  if (known.is_over) return workload::after(record->finished_ns, known.form->job.ttl) > now;
  const bool waits = record == nullptr || (record->admitted_ns == 0 && record->finished_ns == 0);
  return waits && !known.form->spec.cancelled && !records_.has_pods(object.uid);
}

void JobLoop::serve(const ObjectRegistry::Pointer& object, Known& known, Ns now) {
  if (is_idle(*object, known, now)) return;
  Pass pass{.object = object, .known = known, .record = records_.job(object->uid), .job = known.form->job};
  pass.job.cancelled = known.form->spec.cancelled || object->is_ending;
  if (object->is_ending) pass.job.ttl = 0;
  bool is_removed = false;
  return_from_drained_nodes(pass);
  settle_workers(pass, now);
  pass.job.retries += pass.record.returns;
  if (settle_requests(pass) && observe(pass, now)) {
    end_growth(pass);
    known.is_over = pass.observed.finished && std::ranges::none_of(pass.observed.pods, [](const auto& pod) {
                      return pod.has_slice || pod.program == PodProgram::running;
                    });
    for (const Action& action : workload::actions(pass.job, pass.observed, now)) {
      is_removed |= action.kind == Action::Kind::remove;
      carry_out(pass, action, now);
      changed_ = true;
    }
  }
  is_busy_ |= !known.is_over;
  if (!is_removed) write_status(pass);
}

void JobLoop::find_drained_nodes() {
  drained_nodes_.clear();
  for (const auto& node : objects_.list(objects::Kind::node)) {
    const auto spec = api::read<objects::NodeSpec>(node->spec, api::Reading::lenient);
    if (spec && spec->draining) drained_nodes_.insert(node->key.name);
  }
}

// Lets the job return to its queue if a node with one of its slices is drained.
void JobLoop::return_from_drained_nodes(Pass& pass) {
  if (pass.record.admitted_ns == 0 || pass.record.finished_ns != 0 || pass.record.is_returning) return;
  for (const PodRecord& pod : records_.pods(pass.record.uid)) {
    if (!pod.is_granted || !drained_nodes_.contains(pod.node)) continue;
    pass.record.is_returning = true;
    ++pass.record.returns;
    pass.known.why_requeued = fmt::format("node {} is drained", pod.node);
    done(pass, records_.write(pass.record));
    return;
  }
}

// Gives a cluster the workers that were admitted: fewer than are wanted while further ones wait in the queue.
// Further workers of which a node refuses one return to the queue together.
void JobLoop::settle_workers(Pass& pass, Ns now) {
  if (!pass.job.stays || pass.record.admitted_ns == 0) return;
  JobRecord& record = pass.record;
  if (pass.known.refusal && !record.workers_before.empty()) {
    record.workers = std::exchange(record.workers_before, "");
    pass.known.refusal.reset();
    pass.known.retry_at = workload::after(now, workload::backoff_ns(++pass.known.refusals));
  }
  const std::vector<uint32_t> wanted = workload::group_counts(pass.known.form->pods.need);
  const std::vector<uint32_t> admitted = admitted_workers(record, wanted);
  record.workers = workers_text(admitted);
  if (admitted == wanted)
    record.grows_ns = 0;
  else if (record.grows_ns == 0)
    record.grows_ns = now;
  done(pass, records_.write(record));
  pass.job.pods = cluster_pods(pass.known.form->pods.need, admitted);
}

// The workers that were admitted last are not given back any more when all of them have been started.
void JobLoop::end_growth(Pass& pass) {
  if (pass.record.workers_before.empty()) return;
  for (const workload::PodSpec& pod : pass.job.pods) {
    const auto seen = std::ranges::find(pass.observed.pods, pod.id, &workload::Pod::id);
    if (seen == pass.observed.pods.end() || seen->attempt == 0) return;
  }
  pass.record.workers_before.clear();
  pass.known.refusals = 0;
  done(pass, records_.write(pass.record));
}

// Repeats the requests whose answer was lost. Returns false if it is unknown whether a slice was granted.
bool JobLoop::settle_requests(Pass& pass) {
  for (PodRecord record : records_.pods(pass.record.uid)) {
    if (!has_request(record) || record.is_granted) continue;
    if (!record.node.empty()) {
      const auto granted = effects_.grant(slice_request(*pass.object, *pass.known.form, record), record.node);
      if (!granted && granted.error().kind == K::unavailable) return done(pass, granted);
      record.is_granted = granted.has_value();
    }
    if (!record.is_granted) forget_slice(record);
    if (!done(pass, records_.write(record))) return false;
  }
  return true;
}

bool JobLoop::observe(Pass& pass, Ns now) {
  if (pass.record.admitted_ns != 0) pass.observed.admitted_at = std::min(pass.record.admitted_ns, now);
  if (pass.record.finished_ns != 0)
    pass.observed.finished = {.end = static_cast<JobEnd>(pass.record.end),
                              .at = std::min(pass.record.finished_ns, now)};
  pass.observed.refusal = pass.known.refusal;
  pass.observed.returns = pass.record.is_returning;
  for (PodRecord record : records_.pods(pass.record.uid))
    if (!observe_pod(pass, record, now)) return false;
  return true;
}

bool JobLoop::observe_pod(Pass& pass, PodRecord& record, Ns now) {
  const auto program = effects_.program(record.program);
  if (!done(pass, program)) return false;
  if (record.is_granted) {
    // A slice outlives its agent, so the slices of a node that does not answer count as living.
    if (const auto slices = effects_.slices(record.node); slices && !slices->contains(record.program)) {
      forget_slice(record);
      if (program->state == ProgramState::running) done(pass, effects_.kill(record.program));
    } else if (slices) {
      record.devices = fmt::format("{}", fmt::join(slices->at(record.program).devices, " "));
    }
    if (!done(pass, records_.write(record))) return false;
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
  const auto asked = pass.known.asked_starts.find(record.program);
  const bool is_asked = asked != pass.known.asked_starts.end() && asked->second.first > program->attempt &&
                        now < asked->second.second + start_patience;
  if (is_asked) {
    pod.program = PodProgram::running;
    pod.program_since = asked->second.second;
    pod.attempt = asked->second.first;
  } else if (program->attempt == record.attempt && has_failed(pass.job, record, *program)) {
    ++pod.failures;
  }
  if (record.terminated_ns != 0) pod.terminated_at = std::min(record.terminated_ns, now);
  pass.observed.pods.push_back(pod);
  pass.pods[id] = record;
  pass.programs[id] = *program;
  return true;
}

PodRecord JobLoop::record_of(const Pass& pass, PodId id) const {
  const auto found = pass.pods.find(id);
  if (found != pass.pods.end()) return found->second;
  return {.program = pod_name(pass.object->key.name, id),
          .uid = pass.record.uid,
          .role = static_cast<uint32_t>(id.role),
          .index = id.index};
}

void JobLoop::carry_out(Pass& pass, const Action& action, Ns now) {
  using Kind = Action::Kind;
  switch (action.kind) {
    case Kind::requeue: return requeue(pass, now);
    case Kind::finish: return finish(pass, action.end, now);
    case Kind::remove: return remove(pass);
    default: break;
  }
  PodRecord record = record_of(pass, action.pod);
  switch (action.kind) {
    case Kind::create_slice: return create_slice(pass, std::move(record), now);
    case Kind::start: return start(pass, std::move(record), action.attempt, now);
    case Kind::terminate:
      if (!done(pass, effects_.terminate(record.program))) return;
      record.terminated_ns = now;
      done(pass, records_.write(record));
      return;
    case Kind::kill: done(pass, effects_.kill(record.program)); return;
    case Kind::forget: return forget_pod(pass, record);
    default: done(pass, effects_.end_slice(record.node, record.program)); return;
  }
}

bool JobLoop::adopt(const std::string& program, const ProgramOwner& owner) {
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

bool JobLoop::is_taken(Pass& pass, const PodRecord& record) {
  if (!is_taken_ || !is_taken_(record.program)) return false;
  done(pass,
       Outcome<void>(failure(K::unavailable,
                             "a program {} of a lost record is left; the pod is started when it has ended",
                             record.program)));
  return true;
}

// One refusal in a turn is enough: all slices are ended then.
void JobLoop::create_slice(Pass& pass, PodRecord record, Ns now) {
  if (pass.known.refusal && pass.known.refusal->at == now) return;
  if (is_taken(pass, record)) return;
  record.request_id = fmt::format("{}-{}-{}-{}", record.uid, record.role, record.index, now);
  if (!done(pass, records_.write(record))) return;
  if (!done(pass, effects_.keep_owner(record.program, owner_of(*pass.object, record)))) return;
  const auto granted = grant(pass, record);
  if (granted) {
    pass.known.refusal.reset();
    return;
  }
  done(pass, granted);
  if (granted.error().kind == K::unavailable && has_request(record)) return;  // It may have been granted.
  const unsigned times = pass.known.refusal ? pass.known.refusal->times : 0;
  pass.known.refusal = workload::JobObserved::Refusal{.at = now, .times = times + 1};
  pass.known.why_requeued = granted.error().sentence;
}

// Asks the nodes one after the other. The record names the node before it is asked, so no other node is asked
// while it may have granted the slice.
Outcome<void> JobLoop::grant(Pass& pass, PodRecord& record) {
  const api::SliceRequest request = slice_request(*pass.object, *pass.known.form, record);
  Outcome<void> last = failure(K::unavailable, "no node was asked");
  const auto nodes = effects_.nodes_to_ask({.pool = pass.known.form->pool}, request);
  if (!nodes) last = tl::unexpected(nodes.error());
  for (const std::string& node : nodes ? *nodes : std::vector<std::string>()) {
    record.node = node;
    if (auto written = records_.write(record); !written) return written;
    if (auto kept = effects_.keep_owner(record.program, owner_of(*pass.object, record)); !kept) return kept;
    last = effects_.grant(request, node);
    if (last) {
      record.is_granted = true;
      return records_.write(record);
    }
    if (last.error().kind == K::unavailable) return last;
  }
  forget_slice(record);
  if (auto written = records_.write(record); !written) return written;
  return last;
}

fronts::EnginePlaces JobLoop::places_of(const Pass& pass) const {
  return {.scripts = scripts_,
          .job_folder = "/tmp/carve-" + pass.record.uid.substr(0, pass.record.uid.find('-')),
          .port = pass.record.port,
          .secret = pass.record.secret,
          .has_file = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; }};
}

void JobLoop::start(Pass& pass, PodRecord record, unsigned attempt, Ns now) {
  const PodId id = id_of(record);
  const auto seen = std::ranges::find(pass.observed.pods, id, &workload::Pod::id);
  if (is_taken(pass, record)) return;
  record.failures = seen != pass.observed.pods.end() ? seen->failures : 0;
  record.attempt = attempt;
  record.terminated_ns = 0;
  if (!done(pass, records_.write(record))) return;
  if (!done(pass, effects_.keep_owner(record.program, owner_of(*pass.object, record)))) return;
  const JobForm& form = *pass.known.form;
  fronts::PodProgram program =
      fronts::pod_program(form.spec, pass.object->key.name, form.pods, id, places_of(pass));
  ProgramStart start{.slice = record.program,
                     .node = record.is_granted ? record.node : "",
                     .attempt = attempt,
                     .owner_uid = pass.object->owner_uid,
                     .command = std::move(program.command),
                     .env = form.spec.run.env,
                     .workdir = form.spec.run.workdir,
                     .cleanup = std::move(program.cleanup)};
  for (auto& [name, value] : program.env) start.env[name] = std::move(value);
  if (const auto asked = effects_.start(start); !done(pass, asked)) {
    // It cannot be started: the attempt has failed.
    if (asked.error().kind == K::unavailable) return;
    ++record.failures;
    pass.known.why_not_started = asked.error().sentence;
    done(pass, records_.write(record));
    return;
  }
  pass.known.asked_starts[record.program] = {attempt, now};
  os::log::info("{}: {} {} started, attempt {}", text(pass.object->key), carve::text(id.role), id.index,
                attempt);
}

void JobLoop::requeue(Pass& pass, Ns now) {
  const bool returned = pass.record.is_returning;
  pass.record.admitted_ns = 0;
  pass.record.is_returning = false;
  pass.record.grows_ns = 0;
  pass.record.workers.clear();
  pass.record.workers_before.clear();
  if (!done(pass, records_.write(pass.record))) return;
  pass.known.refusal.reset();
  pass.known.refusals += returned ? 0 : 1;
  pass.known.retry_at = workload::after(now, workload::backoff_ns(pass.known.refusals));
  os::log::info("{}: returned to queue {}: {}", text(pass.object->key), pass.known.form->spec.queue,
                pass.known.why_requeued);
}

void JobLoop::finish(Pass& pass, JobEnd end, Ns now) {
  pass.record.finished_ns = now;
  pass.record.end = static_cast<uint32_t>(end);
  if (!done(pass, records_.write(pass.record))) return;
  pass.observed.finished = {.end = end, .at = now};
  os::log::info("{}: finished", text(pass.object->key));
}

void JobLoop::forget_pod(Pass& pass, const PodRecord& record) {
  effects_.forget_program(record.program);
  pass.known.asked_starts.erase(record.program);
  done(pass, records_.remove(record));
}

void JobLoop::remove(Pass& pass) {
  for (const PodRecord& record : records_.pods(pass.record.uid)) effects_.forget_program(record.program);
  if (!done(pass, objects_.remove(pass.object->key))) return;
  records_.forget(pass.record.uid);
  os::log::info("{}: removed", text(pass.object->key));
}

void JobLoop::write_status(Pass& pass) {
  const auto before = api::read<objects::JobStatus>(pass.object->status, api::Reading::lenient);
  const std::string json = api::write(job_status({.object = *pass.object,
                                                  .form = *pass.known.form,
                                                  .record = pass.record,
                                                  .job = pass.job,
                                                  .observed = pass.observed,
                                                  .pods = pass.pods,
                                                  .programs = pass.programs,
                                                  .problem = pass.problem,
                                                  .why_requeued = pass.known.why_requeued,
                                                  .why_not_started = pass.known.why_not_started},
                                                 before.value_or(objects::JobStatus())));
  if (json == pass.object->status) return;
  changed_ = true;
  const auto written = objects_.update(pass.object->key, [&](Object& object) -> Outcome<void> {
    if (object.uid == pass.object->uid) object.status = json;
    return {};
  });
  if (!written && written.error().kind != K::not_found) os::log::error("{}", written.error().sentence);
}

}  // namespace carve::controller
