// The part of the job reconciler that admits jobs: all queues of one pool are decided together
// (workload/queue.h), using the current free capacity of the nodes' devices.
#include <algorithm>

#include "controller/jobs/forecast_capacity.h"
#include "controller/jobs/job_reconciler.h"
#include "controller/nodes/empty_fit.h"
#include "objects/budget_object.h"
#include "objects/rules/queue_check.h"
#include "os/log.h"

namespace carve::controller {

// The state of one decision over all queues of a pool.
struct JobReconciler::PoolTurn {
  std::vector<workload::Queue> queues;
  std::vector<workload::WaitingJob> waiting;
  std::vector<workload::RunningJob> running;
  struct TurnJob {
    ObjectRegistry::Pointer object;
    const CachedJob* known;
  };
  std::vector<TurnJob> jobs;                         // Indexed by the ids used in this decision.
  std::map<uint64_t, workload::JobNeed> growths;     // Clusters that wait for further workers.
  std::map<std::string, std::string> held_accounts;  // The reason, keyed by account.
  std::set<uint64_t> held_back;
  std::map<uint64_t, std::string> passed_by;             // Why other jobs may pass a job, keyed by its id.
  std::map<std::string, objects::QueueStatus> statuses;  // Keyed by queue.
  std::map<std::string, int64_t> oldest_waits;  // The earliest time since which a job waits, keyed by queue.

  // Returns whether other jobs may pass this waiting job, and records why.
  bool is_passed_by(uint64_t id, const Object& object, const CachedJob& known) {
    const auto account = held_accounts.find(object.account);
    if (account == held_accounts.end() && known.misfit.empty()) return false;
    passed_by[id] = account != held_accounts.end() ? account->second : known.misfit;
    return true;
  }
};

namespace {

using workload::PodId;
using workload::QueueAction;
using workload::WaitReason;

// Returns the accounts whose budgets hold new jobs, each with the reason.
std::map<std::string, std::string> accounts_on_hold(const ObjectRegistry& objects) {
  std::map<std::string, std::string> out;
  for (const auto& object : objects.list(objects::Kind::budget)) {
    const auto& spec = object->spec.as<objects::BudgetSpec>();
    const auto& status = object->status.as<objects::BudgetStatus>();
    if (status.holds && spec.then != "warn")
      out.try_emplace(spec.account,
                      fmt::format("budget {} of account {} has been used to {}% in the period until {}",
                                  object->key.name, spec.account, status.percent, status.to.substr(0, 10)));
  }
  return out;
}

}  // namespace

// Returns the nodes' devices with their live slices. The registry's copy of a node is only as recent as its
// agent's last response.
SliceForecast JobReconciler::present_forecast() {
  SliceForecast out(objects_);
  for (const auto& node : objects_.list(objects::Kind::node))
    if (const auto slices = effects_.slices(node->key.name))
      out.replace_slices(node->key.name, living_slices(*slices));
  return out;
}

void JobReconciler::add_queue(std::map<std::string, PoolTurn>& pools, const Object& queue,
                              const SliceForecast& forecast) const {
  const objects::QueueSpec& spec = queue_spec(queue);
  PoolTurn& pool = pools[spec.pool];
  pool.queues.push_back(
      objects::workload_queue(queue.key.name, spec, forecast.capacity(spec.pool).largest_device_bytes));
  pool.statuses.emplace(queue.key.name, objects::QueueStatus{});
}

// Determines whether the job fits on empty devices. It may not fit if it was accepted while no device was
// known, or if devices were removed. The result is valid while the pool's capacity is the same, but at most
// 10 s, because modes and taints of nodes change it too.
void JobReconciler::examine_size(CachedJob& known, const SliceForecast& empty, Ns now) const {
  constexpr Ns lifetime = 10 * workload::second_ns;
  const PoolCapacity capacity = empty.capacity(known.form->pool);
  if (known.misfit_at != 0 && capacity == known.misfit_capacity && now < known.misfit_at + lifetime) return;
  const auto fits = check_fits_empty(empty, known.form->pool, known.form->pods.need);
  known.misfit = fits ? "" : fits.error().message;
  known.misfit_capacity = capacity;
  known.misfit_at = now;
}

void JobReconciler::add_job(PoolTurn& pool, const ObjectRegistry::Pointer& object, const CachedJob& known,
                            Ns now) const {
  const JobRecord* const record = records_.find(object->uid);
  const bool is_finished = record != nullptr && record->finished_ns != 0;
  if (is_finished || object->is_ending || known.form->spec.cancelled) return;
  workload::JobNeed need = known.form->pods.need;
  const std::string& queue = known.form->spec.queue;
  const uint64_t id = pool.jobs.size();
  pool.jobs.push_back({object, &known});
  objects::QueueStatus& status = pool.statuses[queue];
  if (record == nullptr || record->admitted_ns == 0) {
    ++status.waiting;
    int64_t& oldest = pool.oldest_waits[queue];
    const Ns since = known.waits_since(*object);
    if (oldest == 0 || since < oldest) oldest = since;
    pool.waiting.push_back({.id = id,
                            .queue = queue,
                            .priority = known.form->spec.priority,
                            .need = need,
                            .is_held = pool.is_passed_by(id, *object, known)});
    if (known.retry_at > now) pool.held_back.insert(id);
    return;
  }
  if (known.form->job.stays)
    need = workload::with_counts(need, admitted_workers(*record, workload::group_counts(need)));
  ++status.running;
  for (const workload::SliceGroup& group : need.groups) {
    status.slices += group.slices;
    for (uint32_t device = 0; device < group.amounts.device_count(); ++device) {
      const workload::Amount amount = workload::amount_on(group.amounts, device, need.device_memory);
      status.memory_bytes += group.slices * amount.memory.count;
      status.compute_bp += group.slices * amount.compute_bp;
    }
  }
  pool.running.push_back(
      {.id = id, .queue = queue, .need = std::move(need), .admitted_at = record->admitted_ns});
}

// Adds the workers for which a running cluster waits as a job of their own: all of them are admitted or none.
void JobReconciler::add_growth(PoolTurn& pool, const ObjectRegistry::Pointer& object, const CachedJob& known,
                               Ns now) const {
  const workload::JobNeed& need = known.form->pods.need;
  std::vector<uint32_t> missing = workload::group_counts(need);
  const std::vector<uint32_t> admitted = admitted_workers(records_.job(object->uid), missing);
  if (admitted == missing || object->is_ending) return;
  for (size_t i = 0; i < missing.size(); ++i) missing[i] -= admitted[i];
  const uint64_t id = pool.jobs.size();
  pool.jobs.push_back({object, &known});
  pool.growths.emplace(id, workload::with_counts(need, missing));
  pool.waiting.push_back({.id = id,
                          .queue = known.form->spec.queue,
                          .priority = known.form->spec.priority,
                          .need = pool.growths.at(id),
                          .is_held = pool.is_passed_by(id, *object, known),
                          .is_growth = true});
  if (known.retry_at > now) pool.held_back.insert(id);
}

void JobReconciler::decide_queues(Ns now) {
  decided_at_ = now;
  decided_version_ = objects_.version();
  JobPositions::ByUid positions;
  const auto queues = objects_.list(objects::Kind::queue);
  if (queues.empty()) {
    positions_.waits.replace({});
    return positions_.replace({});
  }
  // Each job with the time since which it has waited or run, and whether it is a cluster that waits for
  // further workers.
  std::vector<std::tuple<Ns, bool, ObjectRegistry::Pointer>> jobs;
  for (auto& job : queued_objects(objects_)) {
    const JobRecord* const record = records_.find(job->uid);
    const Ns grows_ns = record == nullptr ? 0 : record->grows_ns;
    jobs.emplace_back(job->created_ns, false, job);
    if (grows_ns != 0) jobs.emplace_back(grows_ns, true, std::move(job));
  }
  std::ranges::sort(jobs, {}, [](const auto& one) {
    return std::tuple(std::get<Ns>(one), std::get<bool>(one),
                      std::string_view(std::get<ObjectRegistry::Pointer>(one)->uid));
  });
  const SliceForecast forecast = present_forecast();
  const SliceForecast empty = forecast.emptied();
  const std::map<std::string, std::string> held_accounts = accounts_on_hold(objects_);
  std::map<std::string, PoolTurn> pools;
  std::map<std::string, std::string> pool_of;  // Keyed by queue.
  for (const auto& queue : queues) {
    add_queue(pools, *queue, forecast);
    pool_of[queue->key.name] = queue_spec(*queue).pool;
  }
  for (auto& [name, pool] : pools) pool.held_accounts = held_accounts;
  for (const auto& [since, is_growth, job] : jobs) {
    const auto known = known_.find(job->uid);
    if (known == known_.end() || !known->second.form) continue;
    const auto pool = pool_of.find(known->second.form->spec.queue);
    if (pool == pool_of.end()) continue;
    const JobRecord* const record = records_.find(job->uid);
    if (is_growth || record == nullptr || (record->admitted_ns == 0 && record->finished_ns == 0))
      examine_size(known->second, empty, now);
    if (is_growth)
      add_growth(pools[pool->second], job, known->second, now);
    else
      add_job(pools[pool->second], job, known->second, now);
  }
  for (auto& [name, pool] : pools) decide(name, pool, forecast, positions, now);
  std::map<std::string, int64_t> oldest_waits;
  for (const auto& queue : queues)
    oldest_waits[queue->key.name] = pools[pool_of[queue->key.name]].oldest_waits[queue->key.name];
  positions_.waits.replace(oldest_waits);
  uint64_t written = 0;
  for (const auto& queue : queues) written += write_queue_status(*queue, pools[pool_of[queue->key.name]]);
  // Changes to the queues' statuses must not trigger another decision. Any other change has a later version.
  if (objects_.version() == decided_version_ + written) decided_version_ += written;
  positions_.replace(std::move(positions));
}

// Returns where the job's slices are and where those that are not granted yet would be placed; the forecast
// counts both.
std::vector<ForecastCapacity::HeldPlace> JobReconciler::places_of_job(const Object& job,
                                                                      const CachedJob& known,
                                                                      SliceForecast& forecast) const {
  std::vector<ForecastCapacity::HeldPlace> out;
  const JobForm& form = *known.form;
  std::map<PodId, PodRecord> records;
  for (PodRecord& record : records_.pods(job.uid))
    records[{static_cast<PodRole>(record.role), record.index}] = std::move(record);
  std::vector<Amounts> missing;
  const workload::JobNeed& need = form.pods.need;
  const auto pods =
      form.job.stays
          ? cluster_pods(need, admitted_workers(records_.job(job.uid), workload::group_counts(need)))
          : form.job.pods;
  for (const workload::PodSpec& pod : pods) {
    if (!pod.needs_slice) continue;
    Amounts request = workload::amounts_of_slice(need, pod.id.index);
    const auto record = records.find(pod.id);
    if (record != records.end() && record->second.is_granted) {
      if (auto place = forecast.place_of(record->second.node, record->second.devices))
        out.push_back({.request = std::move(request), .place = std::move(*place)});
    } else if (record == records.end() || record->second.attempt == 0 || form.job.stays) {
      missing.push_back(std::move(request));  // Otherwise the slice has ended with its program.
    }
  }
  for (const Amounts& request : missing)
    if (auto place = forecast.place({.pool = form.pool}, request))
      out.push_back({.request = request, .place = std::move(*place)});
  return out;
}

void JobReconciler::decide(const std::string& name, PoolTurn& pool, const SliceForecast& present,
                           JobPositions::ByUid& positions, Ns now) {
  if (pool.waiting.empty()) return;
  SliceForecast forecast = present;
  std::map<uint64_t, std::vector<ForecastCapacity::HeldPlace>> places;
  for (const workload::RunningJob& job : pool.running) {
    const auto& [object, known] = pool.jobs.at(job.id);
    places[job.id] = places_of_job(*object, *known, forecast);
  }
  const PoolCapacity total = forecast.capacity(name);
  ForecastCapacity capacity(std::move(forecast), name, pool.held_back);
  for (const workload::RunningJob& job : pool.running) capacity.hold(job.id, std::move(places[job.id]));
  const workload::QueueDecision decision =
      workload::decide(pool.queues, pool.waiting, pool.running,
                       {.memory = Bytes{total.memory_bytes}, .compute_bp = total.compute_bp}, capacity, now);
  for (const QueueAction& action : decision.actions) {
    const Object& object = *pool.jobs.at(action.job).object;
    if (action.kind == QueueAction::Kind::refuse)
      positions[object.uid] = {.position = 0, .reason = action.message};
    else if (pool.growths.contains(action.job))
      admit_growth(object);
    else
      admit_job(object, now);
  }
  std::map<std::string, std::string> heads;  // Name of the first waiting job, by queue.
  for (const workload::WaitingPosition& waiting : decision.waiting) {
    const Object& object = *pool.jobs.at(waiting.job).object;
    const CachedJob& known = *pool.jobs.at(waiting.job).known;
    const std::string& queue = known.form->spec.queue;
    const auto growth = pool.growths.find(waiting.job);
    const workload::JobNeed& need = growth == pool.growths.end() ? known.form->pods.need : growth->second;
    heads.try_emplace(queue, object.key.name);
    JobPosition& position = positions[object.uid];
    position.position = waiting.position;
    switch (waiting.reason) {
      case WaitReason::capacity:
        position.reason = pool.held_back.contains(waiting.job) ? known.why_requeued : capacity.problem(need);
        break;
      case WaitReason::quota:
        position.reason = fmt::format(
            "queue {} is beyond its quota, and a job within the quota of another queue is waiting", queue);
        break;
      case WaitReason::max_running:
        position.reason = fmt::format("queue {} runs as many jobs as its maxRunning allows", queue);
        break;
      case WaitReason::max_slices:
        position.reason = fmt::format("queue {} has as many slices as its maxSlices allows", queue);
        break;
      case WaitReason::behind_head:
        position.reason = fmt::format("{} is first in the queue", heads[queue]);
        break;
      case WaitReason::budget: position.reason = pool.passed_by.at(waiting.job); break;
    }
    if (growth == pool.growths.end()) continue;
    const uint64_t count = workload::slice_count(need);
    position.reason =
        fmt::format("{} more worker{}: {}", count, count == 1 ? " waits" : "s wait", position.reason);
  }
}

void JobReconciler::admit_growth(const Object& object) {
  JobRecord record = records_.job(object.uid);
  const CachedJob& known = known_.at(object.uid);
  if (record.workers_before.empty()) record.workers_before = record.workers;
  record.workers = workers_text(workload::group_counts(known.form->pods.need));
  record.grows_ns = 0;
  changed_ = true;
  if (const auto written = records_.write(record); !written)
    return os::log::error(cause_of(object), "{}", written.error().message);
  os::log::info(cause_of(object), "{}: further workers admitted by queue {}", text(object.key),
                known.form->spec.queue);
}

void JobReconciler::admit_job(const Object& object, Ns now) {
  JobRecord record = records_.job(object.uid);
  CachedJob& known = known_.at(object.uid);
  changed_ = true;
  if (known.form->spec.engine != JobEngine::custom && record.secret.empty()) {
    const auto port = effects_.free_port(Effects::PortUse::engine, records_.ports());
    if (!port) return os::log::warning(cause_of(object), "{}: {}", text(object.key), port.error().message);
    record.port = *port;
    record.secret = effects_.new_secret();
  }
  record.admitted_ns = now;
  if (known.form->job.stays) record.workers = workers_text(workload::group_counts(known.form->pods.need));
  if (const auto written = records_.write(record); !written)
    return os::log::error(cause_of(object), "{}", written.error().message);
  known.why_requeued.clear();
  positions_.waits.admitted(known.form->spec.queue, now - known.waits_since(object));
  os::log::info(cause_of(object), "{}: admitted by queue {}", text(object.key), known.form->spec.queue);
}

bool JobReconciler::write_queue_status(const Object& queue, const PoolTurn& pool) {
  const TypedJson status = pool.statuses.at(queue.key.name);
  if (status == queue.status) return false;
  const auto written = objects_.update(queue.key, [&](Object& object) -> Outcome<void> {
    object.status = status;
    return {};
  });
  if (!written && written.error().kind != FailureKind::not_found)
    os::log::error(cause_of(queue), "{}", written.error().message);
  return written.has_value();
}

}  // namespace carve::controller
