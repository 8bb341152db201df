#include "cli/history_view.h"

#include <algorithm>

#include "base/bytes.h"
#include "cli/terminal.h"
#include "core/utc.h"

namespace carve::cli {
namespace {

constexpr size_t strip_columns = 30;
constexpr std::string_view bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// Returns the metric without its unit: "charged" for "charged_bytes".
std::string name_of(const std::string& metric) { return harmless(metric.substr(0, metric.rfind('_'))); }

struct Extent {
  uint64_t min = UINT64_MAX, max = 0, last = 0, count = 0;
  long double sum = 0;
};

Extent extent_of(const std::vector<std::optional<uint64_t>>& values) {
  Extent out;
  for (const auto& value : values)
    if (value) {
      out.min = std::min(out.min, *value);
      out.max = std::max(out.max, *value);
      out.last = *value;
      out.sum += static_cast<long double>(*value);
      ++out.count;
    }
  return out;
}

// Returns the time of a step in RFC 3339 form.
std::string time_of(const api::MetricHistory& history, size_t step) {
  constexpr int64_t second_ns = 1'000'000'000;
  const auto from = parse_utc("from", history.from);
  if (!from) return history.from;
  return text_utc(*from + static_cast<int64_t>(step) * int64_t{history.step_seconds} * second_ns);
}

}  // namespace

std::string shown_value(const std::string& metric, uint64_t value) {
  if (metric.ends_with("_bytes")) return text(Bytes{value}).c_str();
  if (metric.ends_with("_bp")) return percent(value);
  if (metric.ends_with("_percent")) return fmt::format("{}%", value);
  if (metric.ends_with("_milliwatts")) return fmt::format("{:.1f} W", static_cast<double>(value) / 1000);
  return std::to_string(value);
}

std::string strip_of(const std::vector<std::optional<uint64_t>>& values, size_t width) {
  const uint64_t top = std::max<uint64_t>(extent_of(values).max, 1);
  const size_t columns_used = std::min(width, values.size());
  std::string out;
  for (size_t i = 0; i < columns_used; ++i) {
    const auto begin = values.begin() + static_cast<ptrdiff_t>(i * values.size() / columns_used);
    const auto end = values.begin() + static_cast<ptrdiff_t>((i + 1) * values.size() / columns_used);
    const auto highest = *std::max_element(begin, end);  // No value is less than any value.
    if (!highest)
      out += ' ';
    else
      out += bars[static_cast<size_t>(
          static_cast<long double>(*highest) * (std::size(bars) - 1) / static_cast<long double>(top) + 0.5L)];
  }
  return out;
}

std::string history_table(const api::MetricHistory& history) {
  std::vector<std::vector<std::string>> rows;
  for (const api::MetricValues& series : history.series) {
    const Extent extent = extent_of(series.values);
    if (extent.count == 0) continue;
    const auto shown = [&](uint64_t value) { return shown_value(series.metric, value); };
    rows.push_back({name_of(series.metric), std::to_string(series.device), shown(extent.min),
                    shown(static_cast<uint64_t>(extent.sum / static_cast<long double>(extent.count) + 0.5L)),
                    shown(extent.max), shown(extent.last), strip_of(series.values, strip_columns)});
  }
  const std::string heading =
      fmt::format("{}, {} to {}\n", harmless(history.object), harmless(history.from), harmless(history.to));
  if (rows.empty()) return heading + "No values in this period.\n";
  return heading + table({"METRIC", "DEVICE", "MIN", "MEAN", "MAX", "LAST", "OVER TIME"}, rows);
}

std::string history_csv(const api::MetricHistory& history) {
  std::string out = "time,metric,device,uuid,value\r\n";
  for (const api::MetricValues& series : history.series)
    for (size_t i = 0; i < series.values.size(); ++i)
      out += fmt::format("{},{},{},{},{}\r\n", time_of(history, i), harmless(series.metric), series.device,
                         harmless(series.uuid), series.values[i] ? std::to_string(*series.values[i]) : "");
  return out;
}

}  // namespace carve::cli
