#include "kubernetes/coordinator/metrics/coordinator_metrics.h"

#include <gmock/gmock.h>

namespace carve::kubernetes::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CoordinatorMetrics, all_documented_series_exist) {
  CoordinatorFigures figures{.version = "1", .is_active = true};
  figures.verbs["filter"].answers = 1;
  figures.binds["bound"] = 1;
  figures.webhook[{"ack", "sliced"}] = 1;
  figures.watch_lag_ns["pods"] = 1;
  figures.relists["pods"] = 1;
  figures.pending["strategy"] = true;
  figures.unreadable["nodes"] = 1;
  const std::string text = metrics_text(figures, api::MetricsFormat::prometheus);
  for (const char* series :
       {"carve_extender_seconds_sum{verb=", "carve_extender_seconds_count{verb=", "carve_binds_total{result=",
        "carve_cached_pods ", "carve_watch_lag_seconds{resource=", "carve_relists_total{resource=",
        "carve_overcommitted_devices ", "carve_ledger_drift_devices ", "carve_webhook_total{dialect=",
        "carve_setting_pending{setting=", "carve_unreadable_objects{resource="})
    EXPECT_THAT(text, HasSubstr(series));
}

TEST(CoordinatorMetrics, series_have_their_labels) {
  CoordinatorFigures figures{.version = "1", .is_active = true};
  figures.verbs["filter"] = {.answers = 2, .took_ns = 1'500'000'000};
  figures.webhook[{"ack", "allowed"}] = 3;
  figures.pending["gpuMemoryUnit"] = true;
  figures.drifting_devices = 2;
  const std::string text = metrics_text(figures, api::MetricsFormat::prometheus);
  EXPECT_THAT(text, HasSubstr("carve_coordinator_active 1\n"));
  EXPECT_THAT(text, HasSubstr("carve_extender_seconds_sum{verb=\"filter\"} 1.500000000\n"));
  EXPECT_THAT(text, HasSubstr("carve_webhook_total{dialect=\"ack\",result=\"allowed\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("carve_setting_pending{setting=\"gpuMemoryUnit\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("carve_ledger_drift_devices 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("carve_binds_total"))) << "a family without samples is left out";
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
