// The metrics of the history: which values are kept for a slice on one device and for a device, and in what
// units. A series holds its values as whole numbers of a step (1 MiB, 0.1 %), because small differences take
// fewer bytes (history_block.h).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "core/words.h"

namespace carve::controller {

// A series belongs to a slice's part on one device, or to a device.
enum class HistoryKind : uint8_t { slice, device };

// The order is that of the columns in the file, so a new metric is added at the end.
enum class SliceMetric : uint8_t {
  charged_bytes,
  used_bytes,
  quota_bytes,
  achieved_bp,
  share_bp,
  waiting_bp,
  throttled_bp,
  utilization_percent,
};
enum class DeviceMetric : uint8_t { used_bytes, granted_bytes, utilization_percent, power_milliwatts };

inline constexpr size_t slice_metrics = 8;
inline constexpr size_t device_metrics = 4;
inline constexpr size_t max_history_metrics = slice_metrics;

constexpr size_t metrics_of(HistoryKind kind) {
  return kind == HistoryKind::slice ? slice_metrics : device_metrics;
}

inline constexpr uint64_t memory_step_bytes = 1 << 20;
inline constexpr uint64_t ratio_step_bp = 10;
inline constexpr uint64_t power_step_milliwatts = 100;

// The step of each metric. A share is exact, because it is constant for most of the time.
inline constexpr std::array<uint64_t, slice_metrics> slice_metric_steps = {memory_step_bytes,
                                                                           memory_step_bytes,
                                                                           memory_step_bytes,
                                                                           ratio_step_bp,
                                                                           1,
                                                                           ratio_step_bp,
                                                                           ratio_step_bp,
                                                                           1};
inline constexpr std::array<uint64_t, device_metrics> device_metric_steps = {
    memory_step_bytes, memory_step_bytes, 1, power_step_milliwatts};

constexpr std::span<const uint64_t> metric_steps(HistoryKind kind) {
  if (kind == HistoryKind::slice) return slice_metric_steps;
  return device_metric_steps;
}

// A value in steps. `no_value` marks a time without a sample.
using StepCount = uint32_t;
inline constexpr StepCount no_value = std::numeric_limits<StepCount>::max();

}  // namespace carve::controller

template <>
struct carve::Words<carve::controller::HistoryKind> {
  static constexpr const char* kind = "object with a history";
  static constexpr std::string_view words[] = {"slice", "device"};
};
template <>
struct carve::Words<carve::controller::SliceMetric> {
  static constexpr const char* kind = "metric of a slice";
  static constexpr std::string_view words[] = {"charged_bytes", "used_bytes",         "quota_bytes",
                                               "achieved_bp",   "share_bp",           "waiting_bp",
                                               "throttled_bp",  "utilization_percent"};
};
template <>
struct carve::Words<carve::controller::DeviceMetric> {
  static constexpr const char* kind = "metric of a device";
  static constexpr std::string_view words[] = {"used_bytes", "granted_bytes", "utilization_percent",
                                               "power_milliwatts"};
};
