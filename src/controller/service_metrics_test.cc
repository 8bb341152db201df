#include "controller/service_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carve::controller {
namespace {

std::string text_of(const auto& write) {
  api::Exposition out(api::MetricsFormat::prometheus);
  write(out);
  return std::move(out).text();
}

TEST(ServiceMetrics, count_requests_of_an_endpoint_by_class_and_show_its_load) {
  EXPECT_EQ(text_of([](api::Exposition& out) { write_service_metrics(out, {}); }), "");
  const std::string text = text_of([](api::Exposition& out) {
    write_service_metrics(out, {{.name_space = "default",
                                 .service = "demo",
                                 .requests = 9,
                                 .responses = {0, 7, 0, 0, 2, 0},
                                 .sessions = 3,
                                 .queued = 1,
                                 .mean_response_ms = 12}});
  });
  for (const char* line :
       {"# TYPE carve_service_requests_total counter\n",
        "carve_service_requests_total{namespace=\"default\",service=\"demo\",code=\"2xx\"} 7\n",
        "carve_service_requests_total{namespace=\"default\",service=\"demo\",code=\"5xx\"} 2\n",
        "carve_service_sessions{namespace=\"default\",service=\"demo\"} 3\n",
        "carve_service_queued_requests{namespace=\"default\",service=\"demo\"} 1\n",
        "carve_service_response_time_seconds{namespace=\"default\",service=\"demo\"} 0.012"})
    EXPECT_THAT(text, testing::HasSubstr(line));
}

TEST(ServiceMetrics, show_how_many_jobs_wait_and_how_long_a_decision_took) {
  const std::string text = text_of([](api::Exposition& out) { write_queue_metrics(out, 3, 1'500'000); });
  for (const char* line : {"# TYPE carve_queue_waiting_jobs gauge\ncarve_queue_waiting_jobs 3\n",
                           "carve_queue_decision_seconds 0.001500000\n"})
    EXPECT_THAT(text, testing::HasSubstr(line));
}

}  // namespace
}  // namespace carve::controller
