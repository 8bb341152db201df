#include "wire/api/exposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/invariant.h"

namespace carve::api {
namespace {

constexpr std::string_view end_of_text = "# EOF\n";

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (quotes && c == '"')) out += '\\';
    out += c;
  }
}

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::gauge: return "gauge";
    case MetricType::counter: return "counter";
    case MetricType::histogram: return "histogram";
    case MetricType::summary: return "summary";
  }
  return "unknown";
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

// Removes the text up to the separator and returns it without surrounding blanks.
std::string_view next_word(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view word = trimmed(text.substr(0, end));
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

// Returns a weight of RFC 9110, section 12.4.2, in thousandths; 0 if it cannot be parsed.
unsigned weight_of(std::string_view text) {
  double weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  if (error != std::errc() || end != text.data() + text.size() || !(weight >= 0 && weight <= 1)) return 0;
  return static_cast<unsigned>(std::lround(weight * 1000));
}

// Returns the upper limit of a bucket in seconds, in the canonical form of OpenMetrics: "0.005", "2.5", "1.0".
std::string bound_text(uint64_t ms) {
  std::string out = fmt::format("{}.{:03}", ms / 1000, ms % 1000);
  while (out.ends_with('0') && !out.ends_with(".0")) out.pop_back();
  return out;
}

}  // namespace

MetricsFormat metrics_format(const std::string* accept) {
  unsigned openmetrics = 0, plain = 0;
  std::string_view left = accept == nullptr ? std::string_view() : *accept;
  while (!left.empty()) {
    std::string_view range = next_word(left, ',');
    const std::string_view type = next_word(range, ';');
    unsigned weight = 1000;
    while (!range.empty())
      if (std::string_view parameter = next_word(range, ';'); parameter.starts_with("q="))
        weight = weight_of(parameter.substr(2));
    if (type == "application/openmetrics-text") openmetrics = std::max(openmetrics, weight);
    if (type == "text/plain" || type == "text/*") plain = std::max(plain, weight);
  }
  return openmetrics > 0 && openmetrics >= plain ? MetricsFormat::openmetrics : MetricsFormat::prometheus;
}

const char* metrics_type(MetricsFormat format) {
  return format == MetricsFormat::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                              : "text/plain; version=0.0.4; charset=utf-8";
}

const char* metrics_accept(MetricsFormat format) {
  return format == MetricsFormat::openmetrics ? "application/openmetrics-text;version=1.0.0"
                                              : "text/plain;version=0.0.4";
}

LabelText::LabelText(const LabelNames& names, std::span<const std::string> values) : names_(names) {
  for (size_t i = 0; i < names.size(); ++i) {
    invariant(names[i].empty() == (i >= values.size()), "one value for each label");
    if (names[i].empty() || values[i].empty()) continue;
    if (!text_.empty()) text_ += ',';
    text_ += names[i];
    text_ += "=\"";
    append_escaped(text_, values[i], true);
    text_ += '"';
  }
}

void Histogram::add(uint64_t ms) {
  ++counts_[static_cast<size_t>(std::ranges::lower_bound(bounds_ms_, ms) - bounds_ms_.begin())];
  sum_ms_ += ms;
}

void Exposition::family(const MetricFamily& family) {
  family_ = &family;
  const bool openmetrics = format_ == MetricsFormat::openmetrics;
  std::string_view name = family.name, type = type_name(family.type);
  if (openmetrics && family.type == MetricType::counter) {
    // A counter's samples must end with _total, which the names of DCGM's counters don't.
    if (name.ends_with("_total"))
      name.remove_suffix(6);
    else
      type = "unknown";
  }
  head_ = fmt::format("# HELP {} ", name);
  append_escaped(head_, family.help, openmetrics);
  head_ += fmt::format("\n# TYPE {} {}\n", name, type);
  if (openmetrics && !family.unit.empty()) head_ += fmt::format("# UNIT {} {}\n", name, family.unit);
}

void Exposition::line(std::string_view suffix, std::string_view labels, std::string_view more,
                      std::string_view value) {
  text_ += head_;
  head_.clear();
  text_ += family_->name;
  text_ += suffix;
  if (!labels.empty() || !more.empty()) {
    text_ += '{';
    text_ += labels;
    if (!labels.empty() && !more.empty()) text_ += ',';
    text_ += more;
    text_ += '}';
  }
  text_ += ' ';
  text_ += value;
  text_ += '\n';
}

void Exposition::sample(std::string_view value) {
  invariant(family_ != nullptr && family_->labels[0].empty(), "the family has no labels");
  line("", "", "", value);
}

void Exposition::sample(std::initializer_list<std::string> values, std::string_view value) {
  invariant(family_ != nullptr, "a sample belongs to a family");
  line("", LabelText(family_->labels, std::span(values.begin(), values.size())).text(), "", value);
}

void Exposition::sample(const LabelText& labels, std::string_view value) {
  invariant(family_ != nullptr && labels.names() == family_->labels, "the labels are those of the family");
  line("", labels.text(), "", value);
}

void Exposition::sample(const LabelText& labels, const Histogram& histogram) {
  invariant(family_ != nullptr && labels.names() == family_->labels, "the labels are those of the family");
  invariant(family_->type == MetricType::histogram);
  uint64_t count = 0;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    count += histogram.counts()[i];
    const std::string bound =
        i < histogram.bounds_ms().size() ? bound_text(histogram.bounds_ms()[i]) : std::string("+Inf");
    line("_bucket", labels.text(), fmt::format("le=\"{}\"", bound), std::to_string(count));
  }
  line("_count", labels.text(), "", std::to_string(count));
  line("_sum", labels.text(), "", seconds_of(histogram.sum_ms() * 1'000'000));
}

void Exposition::sample(const LabelText& labels, uint64_t count, std::string_view sum) {
  invariant(family_ != nullptr && labels.names() == family_->labels, "the labels are those of the family");
  invariant(family_->type == MetricType::summary);
  line("_count", labels.text(), "", std::to_string(count));
  line("_sum", labels.text(), "", sum);
}

void Exposition::append(std::string_view text) {
  if (text.ends_with(end_of_text)) text.remove_suffix(end_of_text.size());
  text_ += text;
}

std::string Exposition::text() && {
  if (format_ == MetricsFormat::openmetrics) text_ += end_of_text;
  return std::move(text_);
}

std::vector<TakenSample> take_family(std::string& text, const MetricFamily& family) {
  std::vector<TakenSample> out;
  std::string rest;
  std::string_view left = text;
  std::string_view name = family.name;
  const auto belongs = [&](std::string_view line) -> std::optional<std::string_view> {
    for (const std::string_view start : {"# HELP ", "# TYPE ", "# UNIT ", ""}) {
      if (!line.starts_with(start) || !line.substr(start.size()).starts_with(name)) continue;
      const std::string_view after = line.substr(start.size() + name.size());
      if (after.starts_with(' ') || (start.empty() && after.starts_with('{'))) return after;
    }
    return std::nullopt;
  };
  while (!left.empty()) {
    const size_t end = std::min(left.find('\n'), left.size() - 1) + 1;
    const std::string_view line = left.substr(0, end);
    left.remove_prefix(end);
    const auto after = belongs(line);
    if (!after) {
      rest += line;
      continue;
    }
    if (line.starts_with('#')) continue;
    const size_t blank = after->find_last_of(' ');
    std::string_view labels = after->substr(0, blank);
    if (labels.starts_with('{') && labels.ends_with('}')) labels = labels.substr(1, labels.size() - 2);
    std::string_view value = after->substr(blank + 1);
    if (value.ends_with('\n')) value.remove_suffix(1);
    out.push_back({std::string(labels), std::string(value)});
  }
  text = std::move(rest);
  return out;
}

std::string seconds_of(uint64_t ns) {
  return fmt::format("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000);
}
std::string ratio_of(uint64_t bp) { return fmt::format("{}.{:04}", bp / 10000, bp % 10000); }

}  // namespace carve::api
