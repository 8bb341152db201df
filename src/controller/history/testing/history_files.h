// A history file in a temporary folder, and minutes to write into it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "controller/history/history_store.h"

namespace carve::controller {

struct HistoryFolder {
  HistoryFolder() {
    char name[] = "/tmp/carve-history-XXXXXX";
    folder = mkdtemp(name);
  }
  ~HistoryFolder() { std::filesystem::remove_all(folder); }
  HistoryFolder(const HistoryFolder&) = delete;
  HistoryFolder& operator=(const HistoryFolder&) = delete;
  std::string path() const { return folder / "history.db"; }
  // Returns the bytes of all files.
  uint64_t bytes() const {
    uint64_t out = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder)) out += file.file_size();
    return out;
  }

  std::filesystem::path folder;
};

inline constexpr int64_t first_minute_ns = 500'000 * history_hour_ns;
inline constexpr uint64_t small_history_bytes = uint64_t{20} << 20;

// Returns the time of the n-th minute of the test.
inline int64_t minute_at(int64_t n) { return first_minute_ns + n * history_minute_ns; }

inline HistoryStore opened(const HistoryFolder& folder, int64_t now_minute,
                           uint64_t max_bytes = small_history_bytes) {
  auto file = HistoryStore::open(folder.path(), minute_at(now_minute), max_bytes);
  EXPECT_TRUE(file) << file.error().message;
  return std::move(file->store);
}

inline HistorySeries slice_series(const std::string& name) {
  return {
      .node = "n1", .name = name, .created_ns = 5, .device = "GPU-1", .owner_uid = 1000, .account = "ann"};
}

// Returns the n-th minute, in which each of the slices has the value n + 1 of every metric.
inline HistoryMinute minute_of(const std::vector<std::string>& names, int64_t n) {
  HistoryMinute out{.from_ns = minute_at(n), .series = {}};
  for (const std::string& name : names) {
    SeriesMinute series{.series = slice_series(name), .points = {}};
    for (auto& points : series.points) points.fill(static_cast<StepCount>(n + 1));
    out.series.push_back(series);
  }
  return out;
}

// Returns the minutes for which the slice has a correct value.
inline std::set<int64_t> minutes_of(HistoryStore& store, const std::string& name) {
  std::set<int64_t> out;
  const auto found = store.find(HistoryKind::slice, "n1", name);
  EXPECT_TRUE(found) << found.error().message;
  for (const StoredSeries& series : *found) {
    const auto read =
        store.read({series.id}, first_minute_ns, minute_at(100'000), [&](StoredValues&& values) {
          for (size_t i = 0; i < values.columns.at(0).size(); ++i) {
            const int64_t n = (values.from_ns + static_cast<int64_t>(i) * values.width_ns - first_minute_ns) /
                              history_minute_ns;
            for (const HistoryColumn& column : values.columns)
              if (column[i] != no_value) {
                EXPECT_EQ(column[i], static_cast<StepCount>(n + 1));
                out.insert(n);
              }
          }
        });
    EXPECT_TRUE(read) << read.error().message;
  }
  return out;
}

}  // namespace carve::controller
