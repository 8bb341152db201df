#include "load/work_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace carve::load {
namespace {

nlohmann::ordered_json to_json(const WorkResult& o) {
  std::vector<uint64_t> sorted = o.latencies;
  std::ranges::sort(sorted);
  const auto percentile = [&](size_t p) {
    return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, sorted.size() * p / 100)];
  };
  return {{"kernels_completed", o.kernels_completed},
          {"kernel_ns", o.kernel_ns},
          {"elapsed_ns", o.elapsed_ns},
          {"bytes_allocated", o.bytes_allocated},
          {"bytes_verified", o.bytes_verified},
          {"error", o.error.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(o.error)},
          {"p50_ns", percentile(50)},
          {"p99_ns", percentile(99)}};
}

}  // namespace

void WorkResult::add(const WorkResult& other) {
  kernels_completed += other.kernels_completed;
  kernel_ns += other.kernel_ns;
  elapsed_ns = std::max(elapsed_ns, other.elapsed_ns);
  bytes_allocated += other.bytes_allocated;
  bytes_verified += other.bytes_verified;
  if (error.empty()) error = other.error;
  latencies.insert(latencies.end(), other.latencies.begin(), other.latencies.end());
}

void print(const WorkResult& result) { fmt::print("{}\n", to_json(result).dump()); }

}  // namespace carve::load
