// The load that determines how many replicas a service has.
#pragma once

#include <cstdint>

#include "core/word.h"

namespace carve::objects {

enum class AutoscaleMetric : uint8_t { qps, gpu_utilization, concurrency };

}  // namespace carve::objects

template <>
struct carve::Words<carve::objects::AutoscaleMetric> {
  static constexpr const char* kind = "metric";
  static constexpr std::string_view words[] = {"qps", "gpuUtilization", "concurrency"};
};
