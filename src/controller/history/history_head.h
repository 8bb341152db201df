// The newest minute of the history: it turns samples into points of 5 s, and hands over each minute when it
// is over. It has no clock and no file. A point is the mean of the samples in its 5 s. Times that a slice
// spent computing or waiting are differences between two samples of the agent's counters, so the first sample
// of a slice has none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "controller/history/history_metrics.h"

namespace carve::controller {

inline constexpr int64_t history_second_ns = 1'000'000'000;
inline constexpr int64_t history_point_ns = 5 * history_second_ns;
inline constexpr int64_t history_minute_ns = 60 * history_second_ns;
inline constexpr int64_t history_hour_ns = 60 * history_minute_ns;
inline constexpr size_t points_per_minute = history_minute_ns / history_point_ns;
inline constexpr size_t minutes_per_hour = history_hour_ns / history_minute_ns;

// At most this many series are recorded at a time, over all nodes. Further ones have no history.
inline constexpr size_t max_live_series = 16'384;
// With more series than this, only the mean of each minute is stored.
inline constexpr size_t max_fine_series = 2'048;

// A series and the right to see it.
struct HistorySeries {
  HistoryKind kind = HistoryKind::slice;
  std::string node;
  std::string name;        // The slice's name; empty for a device.
  int64_t created_ns = 0;  // UTC of the grant, which distinguishes slices of the same name; 0 for a device.
  std::string device;      // UUID.
  uint32_t index = 0;      // The device's.
  uint32_t owner_uid = 0;
  std::string account;

  std::string key() const;  // Unique among the series.
  friend bool operator==(const HistorySeries&, const HistorySeries&) = default;
};

// A sample of a slice's counters, in ns since the agent started.
struct HistoryCounters {
  uint64_t as_of_ns = 0;  // CLOCK_MONOTONIC.
  uint64_t busy_ns = 0;
  uint64_t waiting_ns = 0;
  uint64_t throttled_ns = 0;
};

struct HistorySample {
  HistorySeries series;
  // In the metrics' own units. The ratios that follow from the counters are filled in by HistoryHead.
  std::array<std::optional<uint64_t>, max_history_metrics> values;
  std::optional<HistoryCounters> counters;
};

// The points of one series in one minute.
struct SeriesMinute {
  HistorySeries series;
  std::array<std::array<StepCount, points_per_minute>, max_history_metrics> points;
};

struct HistoryMinute {
  int64_t from_ns = 0;  // UTC, a whole minute.
  std::vector<SeriesMinute> series;
};

class HistoryHead {
 public:
  // Adds the samples of one poll. `now_ns` is UTC and never decreases. Returns the minute before it if this is
  // the first call in a new minute.
  std::optional<HistoryMinute> add(const std::vector<HistorySample>&, int64_t now_ns);
  // Returns the minute before `now_ns` if it is over and has points.
  std::optional<HistoryMinute> advance(int64_t now_ns);
  // Returns the points of the current minute so far, and begins it again. For the end of the program.
  std::optional<HistoryMinute> finish();
  // Returns the points of one series in the current minute.
  std::optional<SeriesMinute> find(const std::string& key) const;
  // Returns the series of the current minute with this name.
  std::vector<HistorySeries> named(HistoryKind, const std::string& node, const std::string& name) const;
  int64_t minute_ns() const { return minute_ns_; }

  size_t size() const { return live_.size(); }
  // Number of samples that were dropped because there were `max_live_series` series.
  uint64_t dropped() const { return dropped_; }

 private:
  struct Live {
    SeriesMinute minute;
    std::array<uint64_t, max_history_metrics> sums{};
    std::array<uint32_t, max_history_metrics> counts{};
    std::optional<HistoryCounters> last;
    bool is_seen = false;  // In this minute.
  };
  void close_point();
  static void close_point(Live&, size_t point);
  std::optional<HistoryMinute> take_minute();

  std::unordered_map<std::string, Live> live_;  // Keyed by HistorySeries::key().
  int64_t minute_ns_ = 0;
  size_t point_ = 0;  // The current point of the minute.
  uint64_t dropped_ = 0;
};

}  // namespace carve::controller
