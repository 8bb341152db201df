#include "cluster/metrics/coordinator_metrics.h"

#include <gmock/gmock.h>

namespace carve::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CoordinatorMetrics, series_have_their_labels) {
  CoordinatorFigures figures{.version = "1", .is_active = true};
  figures.verbs["filter"] = {.answers = 2, .took_ns = 1'500'000'000};
  figures.webhook[{"ack", "allowed"}] = 3;
  figures.pending["gpuMemoryUnit"] = true;
  figures.drifting_devices = 2;
  const std::string text = metrics_text(figures);
  EXPECT_THAT(text, HasSubstr("carve_coordinator_active 1\n"));
  EXPECT_THAT(text, HasSubstr("carve_extender_seconds_sum{verb=\"filter\"} 1.500000000\n"));
  EXPECT_THAT(text, HasSubstr("carve_webhook_total{dialect=\"ack\",result=\"allowed\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("carve_setting_pending{setting=\"gpuMemoryUnit\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("carve_ledger_drift_devices 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("carve_binds_total"))) << "a family without samples is left out";
}

}  // namespace
}  // namespace carve::cluster
