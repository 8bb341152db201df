#include "controller/controller_metrics.h"

#include <algorithm>
#include <array>
#include <set>

#include "objects/budget_object.h"
#include "objects/pool_object.h"
#include "objects/queue_object.h"
#include "objects/service_object.h"

namespace carve::controller {
namespace {

using api::metric;

constexpr const char* status_classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx", "other"};

// A gauge of each endpoint.
struct Level {
  const api::MetricFamily& family;
  std::string (*value)(const RequestFigures&);
};
constexpr Level levels[] = {
    {metric("carve_service_sessions"), [](const RequestFigures& f) { return std::to_string(f.sessions); }},
    {metric("carve_service_queued_requests"),
     [](const RequestFigures& f) { return std::to_string(f.queued); }},
    {metric("carve_service_response_time_seconds"),
     [](const RequestFigures& f) { return api::seconds_of(f.mean_response_ms * 1'000'000); }},
};

void write_load(api::Exposition& out, const std::vector<RequestFigures>& endpoints) {
  out.family(metric("carve_service_requests_total"));
  for (const RequestFigures& endpoint : endpoints)
    for (size_t i = 0; i < endpoint.responses.size(); ++i)
      out.sample({endpoint.name_space, endpoint.service, status_classes[i]},
                 std::to_string(endpoint.responses[i]));
  out.family(metric("carve_service_request_seconds"));
  for (const RequestFigures& endpoint : endpoints) {
    api::Histogram latency(latency_bounds_ms);
    for (size_t i = 0; i < endpoint.latency.size(); ++i) latency.add_to_bucket(i, endpoint.latency[i]);
    latency.add_to_sum(endpoint.latency_sum_ms);
    const std::string values[] = {endpoint.name_space, endpoint.service};
    out.sample(api::LabelText(api::metric_labels::service, values), latency);
  }
  for (const Level& level : levels) {
    out.family(level.family);
    for (const RequestFigures& endpoint : endpoints)
      out.sample({endpoint.name_space, endpoint.service}, level.value(endpoint));
  }
}

// Writes the number of replicas in each state, also 0, so that a rule can compare it.
void write_replicas(api::Exposition& out, const ControllerFigures& f, const RestartTotals& restarts) {
  using objects::ReplicaState;
  constexpr auto& states = Words<ReplicaState>::words;
  out.family(metric("carve_service_replicas"));
  for (const auto& object : f.workloads) {
    const auto& status = object->status.as<objects::ServiceStatus>();
    std::array<uint32_t, std::size(states)> counts{};
    uint32_t present = 0;
    for (const objects::ReplicaStatus& replica : status.replica_list) {
      const auto state = replica.state.value();
      if (state) ++counts[static_cast<size_t>(*state)];
      present += state != ReplicaState::stopping;
    }
    const uint32_t pending = status.desired_replicas - std::min(status.desired_replicas, present);
    out.sample({object->key.namespace_, object->key.name, "Pending"}, std::to_string(pending));
    for (size_t i = 0; i < counts.size(); ++i)
      out.sample({object->key.namespace_, object->key.name, std::string(states[i])},
                 std::to_string(counts[i]));
  }
  out.family(metric("carve_service_desired_replicas"));
  for (const auto& object : f.workloads)
    out.sample({object->key.namespace_, object->key.name},
               std::to_string(object->status.as<objects::ServiceStatus>().desired_replicas));
  out.family(metric("carve_service_restarts_total"));
  for (const auto& object : f.workloads)
    out.sample({object->key.namespace_, object->key.name}, std::to_string(restarts.of(object->uid)));
}

void write_queues(api::Exposition& out, const ControllerFigures& f) {
  out.family(metric("carve_queue_jobs"));
  for (const auto& queue : f.queues) {
    const auto& status = queue->status.as<objects::QueueStatus>();
    out.sample({queue->key.name, "Waiting"}, std::to_string(status.waiting));
    out.sample({queue->key.name, "Running"}, std::to_string(status.running));
  }
  out.family(metric("carve_queue_wait_seconds"));
  for (const auto& [queue, waits] : f.waits) {
    const std::string values[] = {queue};
    out.sample(api::LabelText(api::metric_labels::queue, values), waits.waits);
  }
  out.family(metric("carve_queue_oldest_wait_seconds"));
  for (const auto& [queue, waits] : f.waits)
    out.sample({queue}, waits.oldest_ns == 0 ? "0"
                                             : api::seconds_of(static_cast<uint64_t>(
                                                   std::max<int64_t>(0, f.now_ns - waits.oldest_ns))));
  out.family(metric("carve_queue_waiting_jobs"));
  out.sample(std::to_string(f.waiting_jobs));
  out.family(metric("carve_queue_decision_seconds"));
  out.sample(api::seconds_of(static_cast<uint64_t>(f.decision_ns)));
}

void write_pools(api::Exposition& out, const ControllerFigures& f) {
  out.family(metric("carve_pool_drift"));
  for (const auto& pool : f.pools) {
    std::set<std::string_view> nodes;
    for (const objects::PoolDrift& drift : pool->status.as<objects::PoolStatus>().drift)
      nodes.insert(drift.node);
    out.sample({pool->key.name}, std::to_string(nodes.size()));
  }
}

void write_accounts(api::Exposition& out, const ControllerFigures& f) {
  out.family(metric("carve_gpu_hours_total"));
  for (const GpuHours::Sum& sum : f.gpu_hours)
    out.sample({sum.account, sum.queue}, bill::text(sum.gpu_hours));
  out.family(metric("carve_budget_used_ratio"));
  for (const auto& budget : f.budgets)
    out.sample({budget->key.name, budget->spec.as<objects::BudgetSpec>().account},
               api::ratio_of(uint64_t{budget->status.as<objects::BudgetStatus>().percent} * 100));
}

}  // namespace

std::string metrics_text(const ControllerFigures& f, const RestartTotals& restarts,
                         api::MetricsFormat format) {
  api::Exposition out(format);
  out.family(metric("carve_controller_info"));
  out.sample({f.version}, "1");
  write_load(out, f.endpoints);
  write_replicas(out, f, restarts);
  write_queues(out, f);
  write_pools(out, f);
  write_accounts(out, f);
  out.family(metric("carve_controller_loop_longest_turn_seconds"));
  out.sample(api::seconds_of(static_cast<uint64_t>(f.longest_turn_ns)));
  return std::move(out).text();
}

}  // namespace carve::controller
