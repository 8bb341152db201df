// The part of the job loop that admits jobs: all queues of one pool are decided together (workload/queue.h),
// over what the nodes' devices have free now.
#include <algorithm>

#include "controller/jobs/forecast_capacity.h"
#include "controller/jobs/job_loop.h"
#include "fronts/engines/queue_check.h"
#include "os/log.h"
#include "wire/api/json.h"
#include "wire/objects/budget_object.h"

namespace carve::controller {

// All queues of one pool, in one decision.
struct JobLoop::PoolPass {
  std::vector<workload::Queue> queues;
  std::vector<workload::WaitingJob> waiting;
  std::vector<workload::RunningJob> running;
  struct PassJob {
    ObjectRegistry::Pointer object;
    const Known* known;
  };
  std::vector<PassJob> jobs;                         // By the id that they have in this decision.
  std::map<uint64_t, workload::JobNeed> growths;     // Of clusters that wait for further workers.
  std::map<std::string, std::string> held_accounts;  // With the reason.
  std::set<uint64_t> held_back;
  std::map<std::string, objects::QueueStatus> statuses;  // By queue.
};

namespace {

using workload::PodId;
using workload::QueueAction;
using workload::WaitReason;

std::vector<LivingSlice> living_slices(const std::map<std::string, ObservedSlice>& slices) {
  std::vector<LivingSlice> out;
  for (const auto& [name, slice] : slices)
    out.push_back({.devices = slice.devices,
                   .memory_bytes = slice.memory_bytes,
                   .share_bp = slice.share_bp,
                   .is_exclusive = slice.is_exclusive});
  return out;
}

// Returns the accounts whose budgets keep new jobs waiting, each with the reason.
std::map<std::string, std::string> accounts_on_hold(const ObjectRegistry& objects) {
  std::map<std::string, std::string> out;
  for (const auto& object : objects.list(objects::Kind::budget)) {
    const auto spec = api::read<objects::BudgetSpec>(object->spec, api::Reading::lenient);
    const auto status = api::read<objects::BudgetStatus>(object->status, api::Reading::lenient);
    if (spec && status && status->holds && spec->then == "hold")
      out.try_emplace(spec->account,
                      fmt::format("budget {} of account {}: {}% are used until {}", object->key.name,
                                  spec->account, status->percent, status->to.substr(0, 10)));
  }
  return out;
}

}  // namespace

// Returns the nodes' devices with the slices that live now: what the registry knows of a node is as old as
// the last answer of its agent.
SliceForecast JobLoop::present_forecast() {
  SliceForecast out(objects_);
  for (const auto& node : objects_.list(objects::Kind::node))
    if (const auto slices = effects_.slices(node->key.name))
      out.replace_slices(node->key.name, living_slices(*slices));
  return out;
}

void JobLoop::add_queue(std::map<std::string, PoolPass>& pools, const Object& queue,
                        const SliceForecast& forecast) const {
  const objects::QueueSpec spec = queue_spec(queue);
  PoolPass& pool = pools[spec.pool];
  pool.queues.push_back(
      fronts::workload_queue(queue.key.name, spec, forecast.capacity(spec.pool).largest_device_bytes));
  pool.statuses.emplace(queue.key.name, objects::QueueStatus{});
}

void JobLoop::add_job(PoolPass& pool, const ObjectRegistry::Pointer& object, const Known& known,
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
    pool.waiting.push_back({.id = id,
                            .queue = queue,
                            .priority = known.form->spec.priority,
                            .need = need,
                            .is_held = pool.held_accounts.contains(object->account)});
    if (known.retry_at > now) pool.held_back.insert(id);
    return;
  }
  if (known.form->job.stays)
    need = workload::with_counts(need, admitted_workers(*record, workload::group_counts(need)));
  ++status.running;
  for (const workload::JobNeed& part : workload::equal_parts(need)) {
    status.slices += part.slices;
    const uint64_t devices = uint64_t{part.slices} * std::max(part.devices, 1U);
    status.memory_bytes += devices * part.memory.count;
    status.compute_bp += devices * part.share.basis_points;
  }
  pool.running.push_back(
      {.id = id, .queue = queue, .need = std::move(need), .admitted_at = record->admitted_ns});
}

// Adds the workers for which a cluster that runs waits, as a job of its own: all of them are admitted, or
// none.
void JobLoop::add_growth(PoolPass& pool, const ObjectRegistry::Pointer& object, const Known& known,
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
                          .is_held = pool.held_accounts.contains(object->account),
                          .is_growth = true});
  if (known.retry_at > now) pool.held_back.insert(id);
}

void JobLoop::decide_queues(Ns now) {
  decided_at_ = now;
  decided_version_ = objects_.version();
  JobPositions::ByUid positions;
  const auto queues = objects_.list(objects::Kind::queue);
  if (queues.empty()) return positions_.replace({});
  // The moment since which it waits or runs, and whether it is a cluster that waits for further workers.
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
  const std::map<std::string, std::string> held_accounts = accounts_on_hold(objects_);
  std::map<std::string, PoolPass> pools;
  std::map<std::string, std::string> pool_of;  // By queue.
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
    if (is_growth)
      add_growth(pools[pool->second], job, known->second, now);
    else
      add_job(pools[pool->second], job, known->second, now);
  }
  for (auto& [name, pool] : pools) decide(name, pool, forecast, positions, now);
  uint64_t written = 0;
  for (const auto& queue : queues) written += write_queue_status(*queue, pools[pool_of[queue->key.name]]);
  // The statuses of the queues are no reason to decide again. Any other change has a version beyond these.
  if (objects_.version() == decided_version_ + written) decided_version_ += written;
  positions_.replace(std::move(positions));
}

// Returns where the job's slices are, and where those that were not granted yet would come: both are counted
// in the forecast.
std::vector<ForecastCapacity::HeldPlace> JobLoop::places_of_job(const Object& job, const Known& known,
                                                                SliceForecast& forecast) const {
  std::vector<ForecastCapacity::HeldPlace> out;
  const JobForm& form = *known.form;
  std::map<PodId, PodRecord> records;
  for (PodRecord& record : records_.pods(job.uid))
    records[{static_cast<workload::PodRole>(record.role), record.index}] = std::move(record);
  std::vector<api::SliceRequest> missing;
  const workload::JobNeed& need = form.pods.need;
  const auto pods =
      form.job.stays
          ? cluster_pods(need, admitted_workers(records_.job(job.uid), workload::group_counts(need)))
          : form.job.pods;
  for (const workload::PodSpec& pod : pods) {
    if (!pod.needs_slice) continue;
    api::SliceRequest request = slice_terms(workload::need_of_slice(need, pod.id.index));
    const auto record = records.find(pod.id);
    if (record != records.end() && record->second.is_granted) {
      if (auto place = forecast.place_of(record->second.node, record->second.devices))
        out.push_back({.request = std::move(request), .place = std::move(*place)});
    } else if (record == records.end() || record->second.attempt == 0 || form.job.stays) {
      missing.push_back(std::move(request));  // Else its slice has ended with its program.
    }
  }
  for (const api::SliceRequest& request : missing)
    if (auto place = forecast.place({.pool = form.pool}, request))
      out.push_back({.request = request, .place = std::move(*place)});
  return out;
}

void JobLoop::decide(const std::string& name, PoolPass& pool, const SliceForecast& present,
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
      positions[object.uid] = {.position = 0, .reason = action.sentence};
    else if (pool.growths.contains(action.job))
      admit_growth(object);
    else
      admit_job(object, now);
  }
  std::map<std::string, std::string> heads;  // Name of the first waiting job, by queue.
  for (const workload::WaitingPosition& waiting : decision.waiting) {
    const Object& object = *pool.jobs.at(waiting.job).object;
    const Known& known = *pool.jobs.at(waiting.job).known;
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
        position.reason =
            fmt::format("queue {} is beyond its quota, and a job within another queue's waits", queue);
        break;
      case WaitReason::max_running:
        position.reason = fmt::format("queue {} runs as many jobs as its maxRunning allows", queue);
        break;
      case WaitReason::max_slices:
        position.reason = fmt::format("queue {} has as many slices as its maxSlices allows", queue);
        break;
      case WaitReason::behind_head: position.reason = fmt::format("{} is before it", heads[queue]); break;
      case WaitReason::budget: position.reason = pool.held_accounts.at(object.account); break;
    }
    if (growth == pool.growths.end()) continue;
    const uint64_t count = workload::slice_count(need);
    position.reason =
        fmt::format("{} more worker{}: {}", count, count == 1 ? " waits" : "s wait", position.reason);
  }
}

void JobLoop::admit_growth(const Object& object) {
  JobRecord record = records_.job(object.uid);
  const Known& known = known_.at(object.uid);
  if (record.workers_before.empty()) record.workers_before = record.workers;
  record.workers = workers_text(workload::group_counts(known.form->pods.need));
  record.grows_ns = 0;
  changed_ = true;
  if (const auto written = records_.write(record); !written)
    return os::log::error("{}", written.error().sentence);
  os::log::info("{}: further workers admitted by queue {}", text(object.key), known.form->spec.queue);
}

void JobLoop::admit_job(const Object& object, Ns now) {
  JobRecord record = records_.job(object.uid);
  Known& known = known_.at(object.uid);
  changed_ = true;
  if (known.form->spec.engine != carve::text(fronts::Engine::custom) && record.secret.empty()) {
    const auto port = effects_.free_port(Effects::PortUse::engine, records_.ports());
    if (!port) return os::log::warning("{}: {}", text(object.key), port.error().sentence);
    record.port = *port;
    record.secret = effects_.new_secret();
  }
  record.admitted_ns = now;
  if (known.form->job.stays) record.workers = workers_text(workload::group_counts(known.form->pods.need));
  if (const auto written = records_.write(record); !written)
    return os::log::error("{}", written.error().sentence);
  known.why_requeued.clear();
  os::log::info("{}: admitted by queue {}", text(object.key), known.form->spec.queue);
}

bool JobLoop::write_queue_status(const Object& queue, const PoolPass& pool) {
  const std::string json = api::write(pool.statuses.at(queue.key.name));
  if (json == queue.status) return false;
  const auto written = objects_.update(queue.key, [&](Object& object) -> Outcome<void> {
    object.status = json;
    return {};
  });
  if (!written && written.error().kind != FailureKind::not_found)
    os::log::error("{}", written.error().sentence);
  return written.has_value();
}

}  // namespace carve::controller
