// kind: Tariff. The price of a GPU-hour from a given time on (bill/tariff.h). Numbers are texts, parsed digit
// by digit.
#pragma once

#include "objects/object.h"
#include "wire/api/json.h"

namespace carve::objects {

struct TariffUnits {
  std::string model;           // As the driver reports it: "NVIDIA A10".
  std::string gpu_hour_units;  // GPU-hours that one hour of a whole device counts.
};

struct TariffSpec {
  std::string currency;            // Three capital letters.
  std::string from;                // "2026-11-01" or "2026-11-01T08:30:00Z"; until the next tariff begins.
  std::vector<TariffUnits> units;  // In addition to the shipped ones: an A10 has 10.
  std::string price_per_gpu_hour;  // In the currency, for a GPU-hour.
  std::string granularity = "1s";  // A pod's whole time is rounded up to a multiple.
  std::string minimum = "0s";      // Minimum billed time of a pod.
};

struct Tariff {
  std::string api_version;
  std::string kind;
  Metadata metadata;
  TariffSpec spec;
};

}  // namespace carve::objects

CARVE_DECLARE_DOCUMENT(objects::TariffSpec)
CARVE_DECLARE_DOCUMENT(objects::Tariff)
