// The history of metrics in the controller's API (GET /v1/history). Times are RFC 3339 in UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/api/json.h"

namespace carve::api {

// The values of one metric on one device.
struct MetricValues {
  std::string metric;   // "charged_bytes". The name ends with the unit.
  uint32_t device = 0;  // Index.
  std::string uuid;
  // The mean of each step; null if there was no sample in it. The first step begins at `from`.
  std::vector<std::optional<uint64_t>> values;
};

// GET /v1/history
struct MetricHistory {
  std::string object;  // "slice/n1/train", "device/n1/0"
  std::string from;
  std::string to;
  uint32_t step_seconds = 0;
  std::vector<MetricValues> series;
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::MetricHistory)
