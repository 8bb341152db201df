#include "controller/api/history_routes.h"

#include <algorithm>
#include <charconv>
#include <ranges>

#include "controller/api/query.h"
#include "controller/history/history_report.h"
#include "core/utc.h"

namespace carve::controller {
namespace {

constexpr int64_t default_history_ns = history_hour_ns;
constexpr size_t default_history_points = 720;
constexpr int64_t max_step_seconds = 86'400;
// The steps among which the default is chosen.
constexpr int64_t default_steps_seconds[] = {5, 10, 30, 60, 300, 900, 3600};

// Returns the parts of the text, at least one.
std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  for (const auto part : std::views::split(text, at)) out.emplace_back(part.begin(), part.end());
  if (out.empty()) out.emplace_back();  // std::views::split() has no part for an empty text.
  return out;
}

std::optional<int64_t> whole_number(const std::string& text, int64_t max) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0 || out > max) return std::nullopt;
  return out;
}

// Reads "slice/NAME", "slice/NODE/NAME" or "device/NODE/INDEX".
Outcome<void> read_object(const std::string& text, HistoryQuery& query) {
  const std::vector<std::string> parts = split(text, '/');
  const bool is_slice = parts[0] == "slice" && (parts.size() == 2 || parts.size() == 3);
  if (is_slice && !parts.back().empty()) {
    query.kind = HistoryKind::slice;
    query.node = parts.size() == 3 ? parts[1] : "";
    query.name = parts.back();
    return {};
  }
  if (parts[0] == "device" && parts.size() == 3 && !parts[1].empty())
    if (const auto index = whole_number(parts[2], UINT32_MAX)) {
      query.kind = HistoryKind::device;
      query.node = parts[1];
      query.index = static_cast<uint32_t>(*index);
      return {};
    }
  return failure(FailureKind::invalid_argument,
                 "object '{}': must be slice/NAME, slice/NODE/NAME or device/NODE/INDEX",
                 text.substr(0, max_shown_bytes));
}

template <Worded Metric>
Outcome<void> read_metrics(const std::string& text, HistoryQuery& query) {
  if (text.empty()) {
    for (size_t i = 0; i < std::size(Words<Metric>::words); ++i) query.metrics.push_back(i);
    return {};
  }
  for (const std::string& name : split(text, ',')) {
    const auto metric = parse<Metric>(name);
    if (!metric)
      return failure(FailureKind::invalid_argument, "metric '{}': a {} must be one of {}",
                     name.substr(0, max_shown_bytes),
                     Words<HistoryKind>::words[static_cast<size_t>(query.kind)],
                     fmt::join(Words<Metric>::words, ", "));
    const auto index = static_cast<size_t>(*metric);
    if (std::ranges::find(query.metrics, index) != query.metrics.end())
      return failure(FailureKind::invalid_argument, "metric '{}': given twice", name);
    query.metrics.push_back(index);
  }
  return {};
}

Outcome<void> read_period(std::map<std::string, std::string>& given, int64_t now_ns, HistoryQuery& query) {
  query.to_ns = now_ns;
  if (!given["to"].empty()) {
    const auto to = parse_utc("to", given["to"]);
    if (!to) return tl::unexpected(to.error());
    query.to_ns = std::min(*to, now_ns);
  }
  query.from_ns = query.to_ns - default_history_ns;
  if (!given["from"].empty()) {
    const auto from = parse_utc("from", given["from"]);
    if (!from) return tl::unexpected(from.error());
    query.from_ns = *from;
  }
  if (query.from_ns >= query.to_ns)
    return failure(FailureKind::invalid_argument, "'from' ({}) must be before 'to' ({}) and before now",
                   text_utc(query.from_ns), text_utc(query.to_ns));
  if (query.to_ns <= now_ns - max_history_ns)
    return failure(FailureKind::invalid_argument, "'to' ({}): the history goes back {} days",
                   text_utc(query.to_ns), history_days);
  query.from_ns = std::max(query.from_ns, now_ns - max_history_ns);
  return {};
}

// Reads the step, or chooses one, and rounds the period to whole steps.
Outcome<void> read_step(const std::string& text, HistoryQuery& query) {
  const auto points = [&](int64_t step_ns) {
    return static_cast<size_t>((query.to_ns - query.from_ns) / step_ns);
  };
  int64_t seconds = default_steps_seconds[std::size(default_steps_seconds) - 1];
  if (text.empty()) {
    for (const int64_t each : std::views::reverse(default_steps_seconds))
      if (points(each * history_second_ns) <= default_history_points) seconds = each;
  } else {
    const auto given = whole_number(text, max_step_seconds);
    const bool is_known =
        given && (*given < 60 ? *given != 0 && *given % 5 == 0 && 60 % *given == 0 : *given % 60 == 0);
    if (!is_known)
      return failure(FailureKind::invalid_argument,
                     "step '{}': must be 5, 10, 15, 20 or 30 seconds, or a multiple of 60 up to {}",
                     text.substr(0, max_shown_bytes), max_step_seconds);
    seconds = *given;
  }
  query.step_ns = seconds * history_second_ns;
  query.from_ns -= query.from_ns % query.step_ns;
  if (points(query.step_ns) > max_history_points)
    return failure(FailureKind::invalid_argument,
                   "step '{}': this period has {} points; at most {} are allowed, so use a longer step",
                   seconds, points(query.step_ns), max_history_points);
  return {};
}

Outcome<HistoryQuery> history_query(const Call& call, std::map<std::string, std::string>& given) {
  HistoryQuery out;
  if (const auto read = read_object(given["object"], out); !read) return tl::unexpected(read.error());
  const auto metrics = out.kind == HistoryKind::slice ? read_metrics<SliceMetric>(given["metric"], out)
                                                      : read_metrics<DeviceMetric>(given["metric"], out);
  if (!metrics) return tl::unexpected(metrics.error());
  if (const auto read = read_period(given, call.context.views.now_ns(), out); !read)
    return tl::unexpected(read.error());
  if (const auto read = read_step(given["step"], out); !read) return tl::unexpected(read.error());
  out.may_see = [caller = call.caller](uint32_t owner, const std::string& account) {
    return caller.may_see(owner, account);
  };
  return out;
}

}  // namespace

http::Response get_history(const Call& call) {
  auto given = parse_query(call.request.query, {"metric", "object", "from", "to", "step"});
  if (!given) return refuse(given.error());
  auto query = history_query(call, *given);
  if (!query) return refuse(query.error());
  return call.context.views.history(std::move(*query));
}

}  // namespace carve::controller
