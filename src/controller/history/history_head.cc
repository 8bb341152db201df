#include "controller/history/history_head.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/invariant.h"

namespace carve::controller {
namespace {

constexpr uint64_t whole_bp = 10'000;

std::array<StepCount, points_per_minute> without_values() {
  std::array<StepCount, points_per_minute> out;
  out.fill(no_value);
  return out;
}

SeriesMinute minute_without_values(const HistorySeries& series) {
  SeriesMinute out{.series = series, .points = {}};
  out.points.fill(without_values());
  return out;
}

// Returns how much of the time between two samples the counter advanced, in basis points. Returns no value if
// the agent was restarted in between, or if both samples are of the same time.
std::optional<uint64_t> advanced_bp(uint64_t from, uint64_t to, uint64_t elapsed_ns) {
  if (to < from || elapsed_ns == 0) return std::nullopt;
  const auto bp = static_cast<unsigned __int128>(to - from) * whole_bp / elapsed_ns;
  return static_cast<uint64_t>(std::min<unsigned __int128>(bp, whole_bp));
}

using Values = std::array<std::optional<uint64_t>, max_history_metrics>;

void add_ratios(Values& values, const HistoryCounters& from, const HistoryCounters& to) {
  if (to.as_of_ns <= from.as_of_ns) return;
  const uint64_t elapsed_ns = to.as_of_ns - from.as_of_ns;
  const auto set = [&](SliceMetric metric, uint64_t before, uint64_t after) {
    values[static_cast<size_t>(metric)] = advanced_bp(before, after, elapsed_ns);
  };
  set(SliceMetric::achieved_bp, from.busy_ns, to.busy_ns);
  set(SliceMetric::waiting_bp, from.waiting_ns, to.waiting_ns);
  set(SliceMetric::throttled_bp, from.throttled_ns, to.throttled_ns);
}

}  // namespace

std::string HistorySeries::key() const {
  return fmt::format("{}\n{}\n{}\n{}\n{}", static_cast<int>(kind), node, name, created_ns, device);
}

std::optional<HistoryMinute> HistoryHead::add(const std::vector<HistorySample>& samples, int64_t now_ns) {
  auto finished = advance(now_ns);
  for (const HistorySample& sample : samples) {
    std::string key = sample.series.key();
    auto found = live_.find(key);
    if (found == live_.end()) {
      if (live_.size() >= max_live_series) {
        ++dropped_;
        continue;
      }
      found = live_.emplace(std::move(key), Live{.minute = minute_without_values(sample.series)}).first;
    }
    Live& live = found->second;
    live.is_seen = true;
    Values values = sample.values;
    if (sample.counters && live.last) add_ratios(values, *live.last, *sample.counters);
    // A repeated sample of the agent has no newer counters.
    if (!sample.counters || !live.last || sample.counters->as_of_ns != live.last->as_of_ns)
      live.last = sample.counters;
    for (size_t i = 0; i < metrics_of(sample.series.kind); ++i)
      if (values[i]) {
        live.sums[i] += *values[i];
        ++live.counts[i];
      }
  }
  return finished;
}

std::optional<HistoryMinute> HistoryHead::advance(int64_t now_ns) {
  invariant(now_ns >= 0);
  const int64_t minute_ns = now_ns - now_ns % history_minute_ns;
  const auto point = static_cast<size_t>((now_ns - minute_ns) / history_point_ns);
  if (minute_ns == minute_ns_ && point == point_) return std::nullopt;
  close_point();
  point_ = point;
  if (minute_ns == minute_ns_) return std::nullopt;
  auto out = take_minute();
  minute_ns_ = minute_ns;
  return out;
}

std::optional<HistoryMinute> HistoryHead::finish() {
  close_point();
  return take_minute();
}

void HistoryHead::close_point(Live& live, size_t point) {
  const auto steps = metric_steps(live.minute.series.kind);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (live.counts[i] == 0) continue;
    // The mean in steps, rounded to the nearest.
    const uint64_t divisor = uint64_t{live.counts[i]} * steps[i];
    const uint64_t mean = live.sums[i] / divisor + (live.sums[i] % divisor * 2 >= divisor ? 1 : 0);
    live.minute.points[i][point] = static_cast<StepCount>(std::min<uint64_t>(mean, no_value - 1));
  }
  live.sums = {};
  live.counts = {};
}

void HistoryHead::close_point() {
  for (auto& [key, live] : live_) close_point(live, point_);
}

// Series without a sample in the whole minute are forgotten.
std::optional<HistoryMinute> HistoryHead::take_minute() {
  HistoryMinute out{.from_ns = minute_ns_, .series = {}};
  std::erase_if(live_, [](const auto& entry) { return !entry.second.is_seen; });
  for (auto& [key, live] : live_) {
    out.series.push_back(live.minute);
    live.minute = minute_without_values(live.minute.series);
    live.is_seen = false;
  }
  if (out.series.empty()) return std::nullopt;
  return out;
}

std::optional<SeriesMinute> HistoryHead::find(const std::string& key) const {
  const auto found = live_.find(key);
  if (found == live_.end()) return std::nullopt;
  Live live = found->second;
  close_point(live, point_);
  return live.minute;
}

// An empty node means every node.
std::vector<HistorySeries> HistoryHead::named(HistoryKind kind, const std::string& node,
                                              const std::string& name) const {
  std::vector<HistorySeries> out;
  for (const auto& [key, live] : live_) {
    const HistorySeries& series = live.minute.series;
    if (live.is_seen && series.kind == kind && series.name == name && (node.empty() || series.node == node))
      out.push_back(series);
  }
  return out;
}

}  // namespace carve::controller
