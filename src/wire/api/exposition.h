// Prometheus' text exposition format, version 0.0.4: families of samples. Each family is announced once with
// its help and its type. Names follow Prometheus' conventions (base units, _total on counters). Pure.
// Source: prometheus.io/docs/instrumenting/exposition_formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carve::api {

inline constexpr const char* metrics_type = "text/plain; version=0.0.4; charset=utf-8";

using Labels = std::vector<std::pair<std::string_view, std::string>>;

class Exposition {
 public:
  // Begins a family; samples follow until the next one. `type`: "gauge", "counter".
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(const Labels& labels, std::string_view value);

  // Omits families without samples.
  std::string text() const { return text_; }

 private:
  std::string text_, name_, head_;
};

// Exact conversions, without floating point.
std::string seconds_of(uint64_t nanoseconds);  // "1.000000001"
std::string ratio_of(uint64_t basis_points);   // "0.3000"

}  // namespace carve::api
