// Minutes become hours, and the file stays within its limit with many slices and with names that come and go.
#include "controller/history/history_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <random>

#include "controller/history/testing/history_files.h"

namespace carve::controller {
namespace {

int64_t rows(const HistoryFolder& folder, const char* table) {
  sqlite3* connection = nullptr;
  EXPECT_EQ(sqlite3_open(folder.path().c_str(), &connection), SQLITE_OK);
  int64_t out = 0;
  {
    sqlite::Statement s(connection, fmt::format("SELECT count(*) FROM {}", table).c_str());
    EXPECT_TRUE(s.row());
    out = s.number(0);
  }
  sqlite3_close(connection);
  return out;
}

// Returns a minute of `count` slices with random values.
HistoryMinute busy_minute(std::mt19937_64& random, size_t count, int64_t n, size_t first = 0) {
  HistoryMinute out{.from_ns = minute_at(n), .series = {}};
  for (size_t i = first; i < first + count; ++i) {
    SeriesMinute series{.series = slice_series(fmt::format("slice-{}", i)), .points = {}};
    for (size_t metric = 0; metric < slice_metrics; ++metric)
      for (StepCount& point : series.points[metric])
        point = static_cast<StepCount>(metric < 3 ? 4096 + random() % 8 : random() % 1000);
    out.series.push_back(series);
  }
  return out;
}

TEST(HistoryStore, replaces_the_minutes_of_an_hour_when_the_next_hour_is_over) {
  const HistoryFolder folder;
  HistoryStore store = opened(folder, 0);
  std::set<int64_t> written;
  for (int64_t n = 0; n < 119; ++n) {
    if (n % 7 == 3) continue;
    ASSERT_TRUE(store.write(minute_of({"a", "b"}, n)));
    written.insert(n);
  }
  EXPECT_EQ(rows(folder, "hours"), 0);
  EXPECT_EQ(minutes_of(store, "a"), written);
  for (int64_t n = 120; n < 123; ++n) {
    ASSERT_TRUE(store.write(minute_of({"a", "b"}, n)));
    written.insert(n);
  }
  EXPECT_EQ(rows(folder, "hours"), 2) << "one for each slice";
  EXPECT_EQ(rows(folder, "minutes"), 51 + 3);
  EXPECT_EQ(minutes_of(store, "a"), written);
  EXPECT_EQ(minutes_of(store, "b"), written);
}

TEST(HistoryStore, keeps_the_minutes_of_both_programs_if_it_is_restarted_within_one) {
  const HistoryFolder folder;
  auto first = minute_of({"a"}, 10), second = minute_of({"a"}, 10);
  for (auto& points : first.series[0].points) std::fill(points.begin() + 6, points.end(), no_value);
  for (auto& points : second.series[0].points) std::fill(points.begin(), points.begin() + 8, no_value);
  ASSERT_TRUE(opened(folder, 10).write(first));
  HistoryStore store = opened(folder, 10);
  ASSERT_TRUE(store.write(second));
  size_t points = 0;
  const auto series = store.find(HistoryKind::slice, "n1", "a");
  ASSERT_EQ(series->size(), 1u) << "the same series in both";
  ASSERT_TRUE(store.read({series->at(0).id}, minute_at(10), minute_at(11), [&](StoredValues&& values) {
    for (const StepCount value : values.columns[0]) points += value == no_value ? 0 : 1;
  }));
  EXPECT_EQ(points, 6u + 4u);
}

TEST(HistoryStore, deletes_values_after_a_week_and_those_from_the_future) {
  const HistoryFolder folder;
  {
    HistoryStore store = opened(folder, 0);
    ASSERT_TRUE(store.write(minute_of({"old"}, 0)));
    ASSERT_TRUE(store.write(minute_of({"a"}, 7 * 24 * 60)));
    EXPECT_EQ(minutes_of(store, "old"), std::set<int64_t>{0});
    ASSERT_TRUE(store.write(minute_of({"a"}, 7 * 24 * 60 + 61)));
    EXPECT_TRUE(minutes_of(store, "old").empty());
    EXPECT_TRUE(store.find(HistoryKind::slice, "", "old")->empty()) << "its name is forgotten too";
    EXPECT_EQ(minutes_of(store, "a").size(), 2u);
  }
  HistoryStore store = opened(folder, 7 * 24 * 60 + 10);
  EXPECT_EQ(minutes_of(store, "a"), std::set<int64_t>{7 * 24 * 60}) << "the clock was ahead";
}

TEST(HistoryStore, deletes_the_oldest_values_at_its_limit) {
  const HistoryFolder folder;
  std::mt19937_64 random(3);
  HistoryStore store = opened(folder, 0);
  constexpr size_t slices = 64 * 16;
  int64_t n = 0;
  for (; n < 2 * 60; ++n) {
    ASSERT_TRUE(store.write(busy_minute(random, slices, n)));
    ASSERT_LE(store.used_bytes(), small_history_bytes / 4 * 3);
    ASSERT_LE(folder.bytes(), small_history_bytes);
  }
  EXPECT_GT(store.oldest_ns(), minute_at(0)) << "the limit was not reached";
  EXPECT_LT(store.oldest_ns(), minute_at(n - 60)) << "an hour must fit";
  const auto live = store.find(HistoryKind::slice, "n1", "slice-1023");
  ASSERT_EQ(live->size(), 1u) << "a slice that is alive is known, although its first values are deleted";
  EXPECT_EQ(live->at(0).last_ns, minute_at(n));
  size_t seen = 0;
  ASSERT_TRUE(store.read({live->at(0).id}, minute_at(0), minute_at(n), [&](StoredValues&&) { ++seen; }));
  EXPECT_GE(seen, 60u);
}

TEST(HistoryStore, forgets_the_names_of_slices_whose_values_are_deleted) {
  const HistoryFolder folder;
  std::mt19937_64 random(4);
  constexpr uint64_t max_bytes = small_history_bytes / 2;
  HistoryStore store = opened(folder, 0, max_bytes);
  // Each minute, 250 slices begin and those of the minute before have ended.
  size_t names = 0;
  for (int64_t n = 0; n < 4 * 60; ++n, names += 250) {
    ASSERT_TRUE(store.write(busy_minute(random, 250, n, names)));
    ASSERT_LE(folder.bytes(), max_bytes);
  }
  const int64_t kept = rows(folder, "series");
  EXPECT_LT(kept, static_cast<int64_t>(names) * 3 / 4);
  EXPECT_GE(kept, 60 * 250);
  EXPECT_EQ(store.find(HistoryKind::slice, "n1", fmt::format("slice-{}", names - 1))->size(), 1u);
  EXPECT_TRUE(store.find(HistoryKind::slice, "n1", "slice-0")->empty());
}

TEST(HistoryStore, stores_only_means_if_there_are_very_many_slices) {
  const HistoryFolder folder;
  std::mt19937_64 random(5);
  HistoryStore store = opened(folder, 0);
  ASSERT_TRUE(store.write(busy_minute(random, max_fine_series, 0)));
  ASSERT_TRUE(store.write(busy_minute(random, max_fine_series + 1, 1)));
  std::vector<int64_t> widths;
  const auto series = store.find(HistoryKind::slice, "n1", "slice-7");
  ASSERT_TRUE(store.read({series->at(0).id}, minute_at(0), minute_at(2),
                         [&](StoredValues&& values) { widths.push_back(values.width_ns); }));
  EXPECT_EQ(widths, (std::vector<int64_t>{history_point_ns, history_minute_ns}));
}

TEST(HistoryStore, skips_a_damaged_block_and_moves_a_damaged_file_aside) {
  const HistoryFolder folder;
  {
    HistoryStore store = opened(folder, 0);
    for (int64_t n = 0; n < 4; ++n) ASSERT_TRUE(store.write(minute_of({"a"}, n)));
  }
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(folder.path().c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(connection, "UPDATE minutes SET data = x'0102' WHERE id = 2", nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(connection);
  {
    HistoryStore store = opened(folder, 5);
    EXPECT_EQ(minutes_of(store, "a"), (std::set<int64_t>{0, 2, 3}));
    EXPECT_EQ(store.skipped(), 1u);
    ASSERT_TRUE(store.write(minute_of({"a"}, 120)));
    EXPECT_EQ(minutes_of(store, "a"), (std::set<int64_t>{0, 2, 3, 120})) << "also in the hour";
    EXPECT_EQ(store.skipped(), 2u);
  }
  std::ofstream(folder.path(), std::ios::trunc) << "not a database, but long enough to be read as one";
  auto file = HistoryStore::open(folder.path(), minute_at(200), small_history_bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_NE(file->moved_aside, "");
  EXPECT_TRUE(file->store.write(minute_of({"a"}, 200)));
}

// A week of 64 devices with 16 slices each, and a week in which 100,000 slices come and go. Run it with
// --gtest_also_run_disabled_tests; it prints the figures in docs/history.md and takes some minutes.
TEST(HistoryStore, DISABLED_measures_a_week) {
  using std::chrono::steady_clock;
  const auto ms_since = [](steady_clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
  };
  for (const size_t names_per_minute : {0, 10}) {
    const HistoryFolder folder;
    std::mt19937_64 random(6);
    HistoryStore store = opened(folder, 0, max_history_bytes);
    uint64_t most_bytes = 0;
    double longest_ms = 0, sum_ms = 0;
    constexpr int64_t minutes = 7 * 24 * 60;
    for (int64_t n = 0; n < minutes; ++n) {
      const auto minute = names_per_minute == 0 ? busy_minute(random, 1024, n)
                                                : busy_minute(random, 50, n, static_cast<size_t>(n) * 10);
      const auto begin = steady_clock::now();
      ASSERT_TRUE(store.write(minute));
      longest_ms = std::max(longest_ms, ms_since(begin));
      sum_ms += ms_since(begin);
      most_bytes = std::max(most_bytes, folder.bytes());
    }
    EXPECT_LE(most_bytes, max_history_bytes);
    const auto begin = steady_clock::now();
    const auto series = store.find(HistoryKind::slice, "n1",
                                   fmt::format("slice-{}", (minutes - 1) * (names_per_minute == 0 ? 0 : 10)));
    ASSERT_EQ(series->size(), 1u);
    size_t blocks = 0;
    ASSERT_TRUE(
        store.read({series->at(0).id}, minute_at(0), minute_at(minutes), [&](StoredValues&&) { ++blocks; }));
    fmt::print(
        "{} new slices a minute: {:.1f} MiB, {:.1f} days, {} names; a minute is written in {:.1f} ms on "
        "average, "
        "{:.0f} ms at most; {} blocks read in {:.1f} ms\n",
        names_per_minute, static_cast<double>(most_bytes) / (1 << 20),
        static_cast<double>(minute_at(minutes) - store.oldest_ns()) / (24.0 * history_hour_ns),
        rows(folder, "series"), sum_ms / minutes, longest_ms, blocks, ms_since(begin));
  }
}

}  // namespace
}  // namespace carve::controller
