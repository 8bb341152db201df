#include "controller/history/history_report.h"

#include <algorithm>
#include <set>

#include "core/utc.h"

namespace carve::controller {
namespace {

// The mean of the values in each step, weighted by the time that they cover.
class StepMeans {
 public:
  StepMeans(const HistoryQuery& query, uint64_t unit)
      : query_(query),
        unit_(unit),
        steps_(static_cast<size_t>((query.to_ns - query.from_ns + query.step_ns - 1) / query.step_ns)) {}

  void add(int64_t from_ns, int64_t width_ns, StepCount value) {
    if (value == no_value) return;
    const int64_t begin_ns = std::max(from_ns, query_.from_ns);
    const int64_t end_ns = std::min(from_ns + width_ns, query_.to_ns);
    for (int64_t at = begin_ns; at < end_ns;) {
      const int64_t step = (at - query_.from_ns) / query_.step_ns;
      const int64_t until = std::min(end_ns, query_.from_ns + (step + 1) * query_.step_ns);
      Sum& sum = steps_[static_cast<size_t>(step)];
      sum.weighted += static_cast<unsigned __int128>(value) * static_cast<uint64_t>(until - at);
      sum.weight_ns += static_cast<uint64_t>(until - at);
      at = until;
    }
  }

  std::vector<std::optional<uint64_t>> values() const {
    std::vector<std::optional<uint64_t>> out;
    for (const Sum& sum : steps_)
      if (sum.weight_ns == 0)
        out.emplace_back();
      else
        out.emplace_back(static_cast<uint64_t>((sum.weighted * unit_ + sum.weight_ns / 2) / sum.weight_ns));
    return out;
  }

 private:
  struct Sum {
    unsigned __int128 weighted = 0;  // Values in steps of the metric, times ns.
    uint64_t weight_ns = 0;
  };
  const HistoryQuery& query_;
  const uint64_t unit_;
  std::vector<Sum> steps_;
};

std::string_view metric_name(HistoryKind kind, size_t metric) {
  return kind == HistoryKind::slice ? text(static_cast<SliceMetric>(metric))
                                    : text(static_cast<DeviceMetric>(metric));
}

Failure no_history(const HistoryQuery& query) {
  return {FailureKind::not_found, fmt::format("there is no history of {} between {} and {}", object_of(query),
                                              text_utc(query.from_ns), text_utc(query.to_ns))};
}

// Adds the series of the current minute that aren't stored yet.
void add_unstored(std::vector<StoredSeries>& all, const HistoryHead& head, const HistoryQuery& query) {
  for (const HistorySeries& series : head.named(query.kind, query.node, query.name)) {
    const auto known = std::ranges::find_if(
        all, [&](const StoredSeries& each) { return each.series.key() == series.key(); });
    const int64_t end_ns = head.minute_ns() + history_minute_ns;
    if (known != all.end())
      known->last_ns = end_ns;
    else
      all.push_back({.id = 0, .series = series, .first_ns = head.minute_ns(), .last_ns = end_ns});
  }
}

// Returns the series to show: those of one device, or the parts of one slice.
Outcome<std::vector<StoredSeries>> selected(std::vector<StoredSeries> all, const HistoryQuery& query) {
  std::erase_if(all, [&](const StoredSeries& each) {
    if (each.last_ns <= query.from_ns || each.first_ns >= query.to_ns) return true;
    if (query.kind == HistoryKind::device) return each.series.index != query.index;
    return query.may_see && !query.may_see(each.series.owner_uid, each.series.account);
  });
  if (all.empty()) return tl::unexpected(no_history(query));
  if (query.kind == HistoryKind::device) {
    // After an exchange of the hardware, an index has had several devices. The last one is shown.
    const StoredSeries newest = *std::ranges::max_element(all, {}, &StoredSeries::last_ns);
    return std::vector{newest};
  }
  std::set<std::string> nodes;
  for (const StoredSeries& each : all) nodes.insert(each.series.node);
  if (nodes.size() > 1)
    return failure(FailureKind::invalid_argument,
                   "object '{}': slices on {} nodes have this name; use slice/{}/{}", object_of(query),
                   nodes.size(), *nodes.begin(), query.name);
  int64_t newest_ns = 0;
  for (const StoredSeries& each : all) newest_ns = std::max(newest_ns, each.series.created_ns);
  std::erase_if(all, [&](const StoredSeries& each) { return each.series.created_ns != newest_ns; });
  std::ranges::sort(all, {}, [](const StoredSeries& each) { return each.series.index; });
  return all;
}

}  // namespace

std::string object_of(const HistoryQuery& query) {
  if (query.kind == HistoryKind::device) return fmt::format("device/{}/{}", query.node, query.index);
  return query.node.empty() ? "slice/" + query.name : fmt::format("slice/{}/{}", query.node, query.name);
}

Outcome<api::MetricHistory> history_report(HistoryStore& store, const HistoryHead& head,
                                           const HistoryQuery& query) {
  auto all = store.find(query.kind, query.node, query.name);
  if (!all) return tl::unexpected(all.error());
  add_unstored(*all, head, query);
  auto shown = selected(std::move(*all), query);
  if (!shown) return tl::unexpected(shown.error());
  const auto points = static_cast<size_t>((query.to_ns - query.from_ns) / query.step_ns);
  if (points * shown->size() * query.metrics.size() > max_history_values)
    return failure(
        FailureKind::invalid_argument,
        "step: {} metrics of {} devices with {} points are more than {} values; use a longer step, or "
        "fewer metrics",
        query.metrics.size(), shown->size(), points, max_history_values);
  const auto units = metric_steps(query.kind);
  std::vector<std::vector<StepMeans>> means;  // By series and metric.
  std::vector<uint64_t> ids;
  for (const StoredSeries& each : *shown) {
    means.emplace_back();
    for (const size_t metric : query.metrics) means.back().emplace_back(query, units[metric]);
    if (each.id != 0) ids.push_back(each.id);
  }
  std::ranges::sort(ids);
  const auto add = [&](size_t series, size_t metric, int64_t from_ns, int64_t width_ns,
                       std::span<const StepCount> column) {
    for (size_t i = 0; i < column.size(); ++i)
      means[series][metric].add(from_ns + static_cast<int64_t>(i) * width_ns, width_ns, column[i]);
  };
  const auto read = store.read(ids, query.from_ns, query.to_ns, [&](StoredValues&& values) {
    const auto of = std::ranges::find(*shown, values.series, &StoredSeries::id);
    for (size_t m = 0; m < query.metrics.size(); ++m)
      if (query.metrics[m] < values.columns.size())
        add(static_cast<size_t>(of - shown->begin()), m, values.from_ns, values.width_ns,
            values.columns[query.metrics[m]]);
  });
  if (!read) return tl::unexpected(read.error());
  api::MetricHistory out{.object = object_of(query),
                         .from = text_utc(query.from_ns),
                         .to = text_utc(query.to_ns),
                         .step_seconds = static_cast<uint32_t>(query.step_ns / history_second_ns),
                         .series = {}};
  for (size_t s = 0; s < shown->size(); ++s) {
    const HistorySeries& series = (*shown)[s].series;
    const auto now = head.find(series.key());
    for (size_t m = 0; m < query.metrics.size(); ++m) {
      if (now) add(s, m, head.minute_ns(), history_point_ns, now->points[query.metrics[m]]);
      out.series.push_back({.metric = std::string(metric_name(query.kind, query.metrics[m])),
                            .device = series.index,
                            .uuid = series.device,
                            .values = means[s][m].values()});
    }
  }
  return out;
}

}  // namespace carve::controller
