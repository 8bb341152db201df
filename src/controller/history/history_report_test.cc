// Histories as callers see them, compared with a simple model over random samples, gaps and restarts.
#include "controller/history/history_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "controller/history/history_samples.h"
#include "controller/history/testing/history_files.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Kept {
  HistoryFolder folder;
  std::optional<HistoryStore> store = opened(folder, 0);
  HistoryHead head;

  void write(const std::optional<HistoryMinute>& minute) {
    const bool is_kept = !minute || store->write(*minute);
    ASSERT_TRUE(is_kept);
  }
  void add(const std::vector<HistorySample>& samples, int64_t now_ns) { write(head.add(samples, now_ns)); }
  void restart(int64_t now_minute) {
    write(head.finish());
    head = HistoryHead();
    store.reset();
    store.emplace(opened(folder, now_minute));
  }
  std::vector<std::optional<uint64_t>> values(const HistoryQuery& query) {
    const auto report = history_report(*store, head, query);
    EXPECT_TRUE(report) << report.error().message;
    return report && !report->series.empty() ? report->series[0].values
                                             : std::vector<std::optional<uint64_t>>();
  }
};

HistorySample used(const std::string& slice, uint64_t percent, uint32_t owner = 1000,
                   int64_t created_ns = 5) {
  HistorySample out{.series = slice_series(slice)};
  out.series.owner_uid = owner;
  out.series.created_ns = created_ns;
  out.values[static_cast<size_t>(SliceMetric::utilization_percent)] = percent;
  return out;
}

HistoryQuery query_of(const std::string& slice, int64_t from_minute, int64_t to_minute, int64_t step_s) {
  return {.node = "n1",
          .name = slice,
          .metrics = {static_cast<size_t>(SliceMetric::utilization_percent)},
          .from_ns = minute_at(from_minute),
          .to_ns = minute_at(to_minute),
          .step_ns = step_s * history_second_ns};
}

// Means of 5 s, and of them those of a minute, each rounded to the nearest.
struct HistoryModel {
  std::map<int64_t, std::vector<uint64_t>> samples;  // By 5 s since the first minute.

  static uint64_t mean(const std::vector<uint64_t>& values) {
    uint64_t sum = 0;
    for (const uint64_t value : values) sum += value;
    return (sum + values.size() / 2) / values.size();
  }
  std::optional<uint64_t> fine(int64_t point) const {
    const auto found = samples.find(point);
    return found == samples.end() ? std::nullopt : std::optional(mean(found->second));
  }
  std::optional<uint64_t> minute(int64_t n) const {
    std::vector<uint64_t> values;
    for (int64_t point = n * 12; point < n * 12 + 12; ++point)
      if (const auto value = fine(point)) values.push_back(*value);
    return values.empty() ? std::nullopt : std::optional(mean(values));
  }
};

TEST(HistoryReport, agrees_with_a_model_over_random_samples_gaps_and_restarts) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    std::mt19937_64 random(seed);
    Kept kept;
    HistoryModel model;
    constexpr int64_t minutes = 300;
    bool is_lost = false;
    for (int64_t at = 0; at < minutes * 60; at += 2) {
      if (random() % 300 == 0) is_lost = !is_lost;
      if (at % 10 == 0 && random() % 400 == 0) kept.restart(at / 60);
      if (is_lost) continue;
      const uint64_t percent = random() % 101;
      const int64_t now_ns = first_minute_ns + at * history_second_ns;
      kept.add({used("a", percent), used("b", 100 - percent)}, now_ns);
      model.samples[at / 5].push_back(percent);
    }
    const auto by_minute = kept.values(query_of("a", 0, minutes, 60));
    ASSERT_EQ(by_minute.size(), static_cast<size_t>(minutes));
    for (int64_t n = 0; n < minutes; ++n) EXPECT_EQ(by_minute[n], model.minute(n)) << seed << " minute " << n;
    const auto fine = kept.values(query_of("a", minutes - 60, minutes, 5));
    ASSERT_EQ(fine.size(), 720u);
    for (int64_t i = 0; i < 720; ++i)
      EXPECT_EQ(fine[i], model.fine((minutes - 60) * 12 + i)) << seed << " point " << i;
    const auto early = kept.values(query_of("a", 0, 10, 5));
    for (int64_t i = 0; i < 120; ++i)
      EXPECT_EQ(early[i], model.minute(i / 12)) << "a minute counts for its steps";
  }
}

TEST(HistoryReport, makes_the_mean_of_a_longer_step) {
  Kept kept;
  kept.write(minute_of({"a"}, 0));  // The value is 1 in minute 0, 2 in minute 1.
  kept.write(minute_of({"a"}, 1));
  kept.write(minute_of({"a"}, 4));
  EXPECT_THAT(kept.values(query_of("a", 0, 6, 120)), ElementsAre(2, std::nullopt, 5)) << "1.5 is rounded up";
  HistoryQuery query = query_of("a", 0, 6, 360);
  query.metrics = {static_cast<size_t>(SliceMetric::quota_bytes)};
  EXPECT_THAT(kept.values(query), ElementsAre(2'796'203)) << "8 MiB / 3, rounded";
}

TEST(HistoryReport, shows_the_newest_slice_of_a_name_that_the_caller_may_see) {
  Kept kept;
  kept.add({used("a", 10, 1000, 5)}, minute_at(0));
  kept.add({used("a", 20, 2000, 6)}, minute_at(1));
  kept.add({used("a", 30, 1000, 7)}, minute_at(2));
  HistoryQuery query = query_of("a", 0, 3, 60);
  EXPECT_THAT(kept.values(query), ElementsAre(std::nullopt, std::nullopt, 30)) << "the current minute";
  query.may_see = [](uint32_t owner, const std::string&) { return owner == 2000; };
  EXPECT_THAT(kept.values(query), ElementsAre(std::nullopt, 20, std::nullopt));
  query.to_ns = minute_at(1);
  const auto none = history_report(*kept.store, kept.head, query);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, FailureKind::not_found);
  EXPECT_THAT(none.error().message, HasSubstr("no history of slice/n1/a between 2027-"));
}

TEST(HistoryReport, asks_for_the_node_if_several_have_a_slice_of_the_name) {
  Kept kept;
  HistorySample other = used("a", 1);
  other.series.node = "n2";
  kept.add({used("a", 2), other}, minute_at(0));
  HistoryQuery query = query_of("a", 0, 1, 60);
  EXPECT_THAT(kept.values(query), ElementsAre(2));
  query.node.clear();
  const auto both = history_report(*kept.store, kept.head, query);
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, HasSubstr("slices on 2 nodes have this name; use slice/n1/a"));
}

TEST(HistoryReport, shows_each_device_of_a_slice_and_a_device_by_its_index) {
  api::AgentReport report;
  report.devices = {{.index = 3, .uuid = "GPU-3", .granted_bytes = 4 << 20, .used_bytes = 2 << 20}};
  report.devices[0].readings.power_milliwatts = 70'040;
  api::Slice slice{.name = "a", .owner_uid = 7, .created_ns = 9};
  slice.parts = {{.index = 4, .uuid = "GPU-4", .quota_bytes = 2 << 20}, {.index = 3, .uuid = "GPU-3"}};
  slice.parts[0].compute = api::PartCompute{.as_of_ns = 1'000'000'000};
  report.slices = {slice};
  Kept kept;
  kept.add(history_samples("n1", report), minute_at(0));
  report.slices[0].parts[0].compute = api::PartCompute{.as_of_ns = 2'000'000'000, .busy_ns = 250'000'000};
  kept.add(history_samples("n1", report), minute_at(0) + history_second_ns);
  HistoryQuery query = query_of("a", 0, 1, 60);
  query.metrics = {static_cast<size_t>(SliceMetric::quota_bytes),
                   static_cast<size_t>(SliceMetric::achieved_bp)};
  const auto parts = history_report(*kept.store, kept.head, query);
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->series.size(), 4u);
  EXPECT_EQ(parts->series[0].uuid, "GPU-3");
  EXPECT_EQ(parts->series[2].device, 4u);
  EXPECT_THAT(parts->series[2].values, ElementsAre(2 << 20));
  EXPECT_EQ(parts->series[3].metric, "achieved_bp");
  EXPECT_THAT(parts->series[3].values, ElementsAre(2500));
  EXPECT_THAT(parts->series[1].values, ElementsAre(std::nullopt)) << "no arbiter";
  query.kind = HistoryKind::device;
  query.name.clear();
  query.index = 3;
  query.metrics = {static_cast<size_t>(DeviceMetric::power_milliwatts)};
  EXPECT_THAT(kept.values(query), ElementsAre(70'000)) << "in steps of 0.1 W";
  query.index = 4;
  EXPECT_FALSE(history_report(*kept.store, kept.head, query));
}

}  // namespace
}  // namespace carve::controller
