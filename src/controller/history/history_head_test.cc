// Samples become points of 5 s and minutes, on a virtual clock.
#include "controller/history/history_head.h"

#include <gtest/gtest.h>

namespace carve::controller {
namespace {

constexpr int64_t start_ns = 1'800'000'000 * history_second_ns;  // A whole minute.
static_assert(start_ns % history_minute_ns == 0);

HistorySample device_sample(uint64_t used_mib, uint32_t index = 0) {
  HistorySample out{.series = {.kind = HistoryKind::device, .node = "n1", .device = "GPU-1", .index = index}};
  out.series.device += std::to_string(index);
  out.values[0] = used_mib << 20;
  return out;
}

HistorySample slice_sample(const HistoryCounters& counters) {
  HistorySample out{.series = {.node = "n1", .name = "a", .created_ns = 7, .device = "GPU-1"}};
  out.counters = counters;
  return out;
}

StepCount point(const HistoryMinute& minute, size_t metric, size_t at) {
  return minute.series.at(0).points[metric][at];
}

TEST(HistoryHead, makes_the_mean_of_the_samples_of_5_s) {
  HistoryHead head;
  EXPECT_FALSE(head.add({device_sample(10)}, start_ns));
  EXPECT_FALSE(head.add({device_sample(20)}, start_ns + 2 * history_second_ns));
  EXPECT_FALSE(head.add({device_sample(31)}, start_ns + 4 * history_second_ns));
  EXPECT_FALSE(head.add({device_sample(7)}, start_ns + 15 * history_second_ns));
  const auto minute = head.add({device_sample(1)}, start_ns + history_minute_ns);
  ASSERT_TRUE(minute);
  EXPECT_EQ(minute->from_ns, start_ns);
  EXPECT_EQ(point(*minute, 0, 0), 20u) << "61 / 3, rounded";
  EXPECT_EQ(point(*minute, 0, 1), no_value) << "no sample in this time";
  EXPECT_EQ(point(*minute, 0, 3), 7u);
  EXPECT_EQ(point(*minute, 3, 0), no_value) << "a device that reports no power";
}

TEST(HistoryHead, makes_ratios_of_the_differences_of_counters) {
  HistoryHead head;
  constexpr uint64_t s = history_second_ns;
  head.add({slice_sample({.as_of_ns = 100 * s, .busy_ns = 50 * s})}, start_ns);
  head.add(
      {slice_sample({.as_of_ns = 102 * s, .busy_ns = 51 * s, .waiting_ns = s / 2, .throttled_ns = 2 * s})},
      start_ns + 5 * history_second_ns);
  // The agent was restarted: its counters begin again.
  head.add({slice_sample({.as_of_ns = 104 * s, .busy_ns = 0})}, start_ns + 10 * history_second_ns);
  // The agent has taken no newer sample.
  head.add({slice_sample({.as_of_ns = 104 * s, .busy_ns = 0})}, start_ns + 15 * history_second_ns);
  head.add({slice_sample({.as_of_ns = 108 * s, .busy_ns = 4 * s})}, start_ns + 20 * history_second_ns);
  const auto minute = head.advance(start_ns + history_minute_ns);
  ASSERT_TRUE(minute);
  constexpr auto achieved = static_cast<size_t>(SliceMetric::achieved_bp);
  constexpr auto waiting = static_cast<size_t>(SliceMetric::waiting_bp);
  constexpr auto throttled = static_cast<size_t>(SliceMetric::throttled_bp);
  EXPECT_EQ(point(*minute, achieved, 0), no_value) << "there is no sample before the first one";
  EXPECT_EQ(point(*minute, achieved, 1), 500u) << "50 % in steps of 0.1 %";
  EXPECT_EQ(point(*minute, waiting, 1), 250u);
  EXPECT_EQ(point(*minute, throttled, 1), 1000u);
  EXPECT_EQ(point(*minute, achieved, 2), no_value);
  EXPECT_EQ(point(*minute, achieved, 3), no_value);
  EXPECT_EQ(point(*minute, achieved, 4), 1000u);
}

TEST(HistoryHead, forgets_a_series_after_a_minute_without_samples) {
  HistoryHead head;
  head.add({device_sample(1)}, start_ns);
  EXPECT_TRUE(head.advance(start_ns + history_minute_ns));
  EXPECT_EQ(head.size(), 1u);
  EXPECT_FALSE(head.advance(start_ns + 2 * history_minute_ns)) << "a minute without samples isn't written";
  EXPECT_EQ(head.size(), 0u);
}

TEST(HistoryHead, shows_the_current_minute_and_gives_it_up_at_the_end) {
  HistoryHead head;
  head.add({device_sample(5)}, start_ns + 30 * history_second_ns);
  const auto now = head.find(device_sample(5).series.key());
  ASSERT_TRUE(now);
  EXPECT_EQ(now->points[0][6], 5u);
  EXPECT_FALSE(head.find("other"));
  EXPECT_EQ(head.named(HistoryKind::device, "n1", "").size(), 1u);
  EXPECT_EQ(head.named(HistoryKind::device, "n2", "").size(), 0u);
  const auto rest = head.finish();
  ASSERT_TRUE(rest);
  EXPECT_EQ(point(*rest, 0, 6), 5u);
  EXPECT_FALSE(head.finish());
}

TEST(HistoryHead, records_no_more_series_than_its_limit) {
  HistoryHead head;
  std::vector<HistorySample> samples;
  for (uint32_t i = 0; i < max_live_series + 10; ++i) samples.push_back(device_sample(i, i));
  head.add(samples, start_ns);
  EXPECT_EQ(head.size(), max_live_series);
  EXPECT_EQ(head.dropped(), 10u);
  EXPECT_EQ(head.advance(start_ns + history_minute_ns)->series.size(), max_live_series);
}

}  // namespace
}  // namespace carve::controller
