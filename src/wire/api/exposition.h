// Writes metrics in Prometheus' text format, version 0.0.4, or in OpenMetrics 1.0, which a scraper requests in
// the header Accept. A family is a row of metric_families.h, which determines the names of its labels. The
// functions are pure. Sources: prometheus.io/docs/instrumenting/exposition_formats and
// github.com/OpenObservability/OpenMetrics (specification/OpenMetrics.md).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/api/metric_families.h"

namespace carve::api {

enum class MetricsFormat : uint8_t { prometheus, openmetrics };

// Returns OpenMetrics if the value of the header Accept prefers it to text/plain or ranks both equally.
// `accept` is null if the request has no such header.
MetricsFormat metrics_format(const std::string* accept);
const char* metrics_type(MetricsFormat);    // The value of Content-Type.
const char* metrics_accept(MetricsFormat);  // A value of Accept that requests the format.

// The labels of a sample, formatted once for several families with the same labels.
class LabelText {
 public:
  // `values` has one value for each name. Labels with empty values are left out, because Prometheus treats
  // them as absent.
  LabelText(const LabelNames& names, std::span<const std::string> values);

  const LabelNames& names() const { return names_; }
  const std::string& text() const { return text_; }  // `slice="a",device="0"`

 private:
  LabelNames names_;
  std::string text_;
};

// A cumulative count of durations by size. Counts never decrease.
class Histogram {
 public:
  // `bounds_ms` has the upper limits of the buckets in ascending order, and must outlive this object.
  explicit Histogram(std::span<const uint64_t> bounds_ms)
      : bounds_ms_(bounds_ms), counts_(bounds_ms.size() + 1) {}

  void add(uint64_t ms);
  // Adds `count` durations to bucket `bucket`; the last bucket has no upper limit.
  void add_to_bucket(size_t bucket, uint64_t count) { counts_.at(bucket) += count; }
  void add_to_sum(uint64_t ms) { sum_ms_ += ms; }

  std::span<const uint64_t> bounds_ms() const { return bounds_ms_; }
  std::span<const uint64_t> counts() const { return counts_; }  // Not cumulative.
  uint64_t sum_ms() const { return sum_ms_; }

 private:
  std::span<const uint64_t> bounds_ms_;
  std::vector<uint64_t> counts_;
  uint64_t sum_ms_ = 0;
};

class Exposition {
 public:
  explicit Exposition(MetricsFormat format) : format_(format) {}

  // Begins a family. Its samples follow until the next family begins. A family without samples is omitted.
  void family(const MetricFamily&);
  void sample(std::string_view value);  // For a family without labels.
  void sample(std::initializer_list<std::string> values, std::string_view value);
  void sample(const LabelText& labels, std::string_view value);  // `labels` must have the family's names.
  void sample(const LabelText& labels, const Histogram&);
  // For a summary: the number of observations and their sum in seconds.
  void sample(const LabelText& labels, uint64_t count, std::string_view sum);

  // Adds the families of another program, as text in the same format.
  void append(std::string_view text);

  std::string text() &&;

 private:
  void line(std::string_view suffix, std::string_view labels, std::string_view more, std::string_view value);

  const MetricsFormat format_;
  std::string text_, head_;
  const MetricFamily* family_ = nullptr;
};

// A family that was removed from a text: the labels and the value of each sample.
struct TakenSample {
  std::string labels;  // `setting="policy"`
  std::string value;
};
// Removes the family from the text, so that another program's samples of the family can be written with its
// own. A family has no duplicates in one text. `text` is in either format.
std::vector<TakenSample> take_family(std::string& text, const MetricFamily&);

// Convert exactly, without floating point.
std::string seconds_of(uint64_t nanoseconds);  // "1.000000001"
std::string ratio_of(uint64_t basis_points);   // "0.3000"

}  // namespace carve::api
