#include "controller/controller_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "objects/budget_object.h"
#include "objects/pool_object.h"
#include "objects/queue_object.h"
#include "objects/service_object.h"

namespace carve::controller {
namespace {

using testing::HasSubstr;
using testing::Not;

template <class Status>
ObjectRegistry::Pointer object(const std::string& name, const Status& status) {
  auto out = std::make_shared<Object>();
  out->key.namespace_ = "default";
  out->key.name = name;
  out->uid = name;
  out->status = status;
  return out;
}

std::string text_of(const ControllerFigures& figures) {
  return metrics_text(figures, RestartTotals(), api::MetricsFormat::prometheus);
}

void expect_lines(const std::string& text, std::initializer_list<const char*> lines) {
  for (const char* line : lines) EXPECT_THAT(text, HasSubstr(line));
}

ControllerFigures with_endpoint() {
  RequestFigures demo{.name_space = "default",
                      .service = "demo",
                      .requests = 9,
                      .responses = {0, 7, 0, 0, 2, 0},
                      .sessions = 3,
                      .queued = 1,
                      .mean_response_ms = 12};
  demo.latency[0] = 4;
  demo.latency[7] = 3;
  demo.latency.back() = 2;
  demo.latency_sum_ms = 1'234;
  return {.endpoints = {demo}};
}

TEST(ControllerMetrics, count_requests_of_an_endpoint_by_class_and_show_its_load) {
  EXPECT_THAT(text_of({}), Not(HasSubstr("carve_service")));
  expect_lines(text_of(with_endpoint()),
               {"# TYPE carve_service_requests_total counter\n",
                "carve_service_requests_total{namespace=\"default\",service=\"demo\",code=\"2xx\"} 7\n",
                "carve_service_requests_total{namespace=\"default\",service=\"demo\",code=\"5xx\"} 2\n",
                "carve_service_sessions{namespace=\"default\",service=\"demo\"} 3\n",
                "carve_service_queued_requests{namespace=\"default\",service=\"demo\"} 1\n",
                "carve_service_response_time_seconds{namespace=\"default\",service=\"demo\"} 0.012"});
}

TEST(ControllerMetrics, show_the_times_of_responses_as_a_histogram) {
  const std::string name = "carve_service_request_seconds_bucket{namespace=\"default\",service=\"demo\",le=";
  expect_lines(text_of(with_endpoint()),
               {"# TYPE carve_service_request_seconds histogram\n", (name + "\"0.005\"} 4\n").c_str(),
                (name + "\"0.5\"} 4\n").c_str(), (name + "\"1.0\"} 7\n").c_str(),
                (name + "\"300.0\"} 7\n").c_str(), (name + "\"+Inf\"} 9\n").c_str(),
                "carve_service_request_seconds_sum{namespace=\"default\",service=\"demo\"} 1.234000000\n",
                "carve_service_request_seconds_count{namespace=\"default\",service=\"demo\"} 9\n"});
}

TEST(ControllerMetrics, count_replicas_by_state_and_those_without_a_slice) {
  objects::ServiceStatus status{.desired_replicas = 5};
  status.replica_list = {{.slice = "a", .state = objects::ReplicaState::ready},
                         {.slice = "b", .state = objects::ReplicaState::ready},
                         {.slice = "c", .state = objects::ReplicaState::crash_loop_back_off},
                         {.slice = "d", .state = objects::ReplicaState::stopping}};
  const std::string name = "carve_service_replicas{namespace=\"default\",service=\"demo\",state=";
  expect_lines(text_of({.workloads = {object("demo", status)}}),
               {(name + "\"Pending\"} 2\n").c_str(), (name + "\"Ready\"} 2\n").c_str(),
                (name + "\"CrashLoopBackOff\"} 1\n").c_str(), (name + "\"Stopping\"} 1\n").c_str(),
                (name + "\"Failed\"} 0\n").c_str(),
                "carve_service_desired_replicas{namespace=\"default\",service=\"demo\"} 5\n",
                "carve_service_restarts_total{namespace=\"default\",service=\"demo\"} 0\n"});
}

TEST(ControllerMetrics, show_how_many_jobs_wait_and_how_long) {
  QueueWaits waits;
  waits.replace({{"train", 5'000'000'000}});
  waits.admitted("train", 700'000'000);
  expect_lines(text_of({.queues = {object("train", objects::QueueStatus{.waiting = 3, .running = 2})},
                        .waits = waits.queues(),
                        .waiting_jobs = 3,
                        .decision_ns = 1'500'000,
                        .now_ns = 65'500'000'000}),
               {"carve_queue_jobs{queue=\"train\",state=\"Waiting\"} 3\n",
                "carve_queue_jobs{queue=\"train\",state=\"Running\"} 2\n",
                "carve_queue_oldest_wait_seconds{queue=\"train\"} 60.500000000\n",
                "carve_queue_wait_seconds_bucket{queue=\"train\",le=\"0.5\"} 0\n",
                "carve_queue_wait_seconds_bucket{queue=\"train\",le=\"1.0\"} 1\n",
                "# TYPE carve_queue_waiting_jobs gauge\ncarve_queue_waiting_jobs 3\n",
                "carve_queue_decision_seconds 0.001500000\n"});
}

TEST(ControllerMetrics, show_drift_once_for_each_node) {
  objects::PoolStatus status;
  status.drift = {{.node = "n1", .label = "a"}, {.node = "n1", .label = "b"}, {.node = "n2", .label = "a"}};
  expect_lines(text_of({.pools = {object("p", status)}}), {"carve_pool_drift{pool=\"p\"} 2\n"});
}

TEST(ControllerMetrics, show_gpu_hours_and_budgets_of_accounts) {
  auto budget = std::make_shared<Object>();
  budget->key.name = "b";
  budget->spec = objects::BudgetSpec{.account = "team-a"};
  budget->status = objects::BudgetStatus{.percent = 93};
  expect_lines(text_of({.budgets = {budget}, .gpu_hours = {{"team-a", "", 1'500'000}, {"team-b", "q", 2}}}),
               {"carve_gpu_hours_total{account=\"team-a\"} 1.500000\n",
                "carve_gpu_hours_total{account=\"team-b\",queue=\"q\"} 0.000002\n",
                "carve_budget_used_ratio{budget=\"b\",account=\"team-a\"} 0.9300\n"});
}

// The table must not promise series that the controller doesn't write.
TEST(ControllerMetrics, contain_every_family_of_the_controller) {
  QueueWaits waits;
  waits.replace({{"train", 1}});
  ControllerFigures figures = with_endpoint();
  figures.workloads = {object("demo", objects::ServiceStatus{})};
  figures.queues = {object("train", objects::QueueStatus{})};
  figures.pools = {object("p", objects::PoolStatus{})};
  figures.budgets = {object("b", objects::BudgetStatus{})};
  figures.waits = waits.queues();
  figures.gpu_hours = {{"a", "", 1}};
  const std::string text = text_of(figures);
  for (const api::MetricFamily& family : api::metric_families)
    if ((family.writers & api::controller_writes) != 0) {
      EXPECT_THAT(text, HasSubstr(fmt::format("# TYPE {} ", family.name)));
    }
}

}  // namespace
}  // namespace carve::controller
