// Prometheus' text exposition format, version 0.0.4: families of samples. Each family is announced once with
// its help and its type. Names follow Prometheus' conventions (base units, _total on counters). The functions
// are pure. Source: prometheus.io/docs/instrumenting/exposition_formats.
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
  // Begins a family. Its samples follow until the next family begins. `type` is "gauge" or "counter".
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(const Labels& labels, std::string_view value);

  // Returns the text. Families without samples are omitted.
  std::string text() const { return text_; }

 private:
  std::string text_, name_, head_;
};

// Converts exactly, without floating point.
std::string seconds_of(uint64_t nanoseconds);  // "1.000000001"
std::string ratio_of(uint64_t basis_points);   // "0.3000"

}  // namespace carve::api
