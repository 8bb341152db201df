#include "cli/history_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carve::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

api::MetricHistory shown_history() {
  return {.object = "slice/n1/a",
          .from = "2026-11-01T00:00:00Z",
          .to = "2026-11-01T00:00:20Z",
          .step_seconds = 5,
          .series = {
              {.metric = "charged_bytes", .device = 0, .uuid = "GPU-1", .values = {{}, 0, 1 << 30, 3 << 29}},
              {.metric = "throttled_bp", .device = 0, .uuid = "GPU-1", .values = {{}, {}, {}, {}}}}};
}

TEST(HistoryView, shows_values_with_the_unit_of_their_metric) {
  EXPECT_EQ(shown_value("charged_bytes", 3 << 29), "1.5 GiB");
  EXPECT_EQ(shown_value("achieved_bp", 2990), "29.9%");
  EXPECT_EQ(shown_value("utilization_percent", 7), "7%");
  EXPECT_EQ(shown_value("power_milliwatts", 70'040), "70.0 W");
}

TEST(HistoryView, draws_the_largest_value_of_each_column_and_a_blank_for_a_gap) {
  EXPECT_EQ(strip_of({0, 7, {}, 4}, 10), "▁█ ▅");
  EXPECT_EQ(strip_of({1, 7, {}, {}, 0, 0}, 3), "█ ▁");
  EXPECT_EQ(strip_of({0, 0}, 10), "▁▁");
  EXPECT_EQ(strip_of({}, 10), "");
}

TEST(HistoryView, prints_a_row_for_each_metric_with_values) {
  const std::string text = history_table(shown_history());
  EXPECT_THAT(text, HasSubstr("slice/n1/a, 2026-11-01T00:00:00Z to 2026-11-01T00:00:20Z\n"));
  EXPECT_THAT(text, HasSubstr("charged  0       0 B  853.3 MiB  1.5 GiB  1.5 GiB   ▁▆█"));
  EXPECT_THAT(text, Not(HasSubstr("throttled")));
  EXPECT_THAT(history_table({.object = "slice/a"}), HasSubstr("No values in this period."));
}

TEST(HistoryView, prints_a_line_of_csv_for_each_step) {
  const std::string text = history_csv(shown_history());
  EXPECT_THAT(text,
              HasSubstr("time,metric,device,uuid,value\r\n2026-11-01T00:00:00Z,charged_bytes,0,GPU-1,\r\n"));
  EXPECT_THAT(text, HasSubstr("2026-11-01T00:00:10Z,charged_bytes,0,GPU-1,1073741824\r\n"));
}

}  // namespace
}  // namespace carve::cli
