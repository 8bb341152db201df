// Holders of slices in a period, in the controller's API. Figures that invoices also have are the same there
// (wire/api/bill.h): strings with six decimals. Times are RFC 3339 in UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/api/json.h"

namespace carve::api {

// The allocations of one account, user, service or label. An allocation is a slice from its grant to its end.
struct AllocationSum {
  std::string key;
  bool is_rest = false;  // The sum of the allocations without the key, such as those without the label.
  std::optional<uint32_t> uid;  // The user's, if the groups are users.
  uint64_t allocations = 0;     // Those with time in the period.
  uint64_t begun = 0;           // Those that were granted in the period.
  uint64_t ended = 0;           // Those that ended in the period.
  uint64_t held = 0;            // Those that had not ended at its end.
  std::string gpu_hours;        // Granted, as in the invoice.
  std::string used_gpu_hours;
  std::string idle_gpu_hours;  // Granted and not used, summed over the allocations.
  std::string amount;
  std::string unpriced_seconds;
  // For the whole allocations, from the grant to the end or until now.
  uint64_t median_stay_seconds = 0;
  uint64_t longest_stay_seconds = 0;
  std::string since;  // The oldest grant that had not ended at the end of the period. Empty if none is held.
};

// The devices in one day of the period, or in the part of the day that belongs to it.
struct InventoryDay {
  std::string from;
  std::string to;
  std::string granted_device_hours;  // Hours times the ratio of the invoice's rule.
  // Number of devices times hours. Absent before the controller recorded the number of devices.
  std::optional<std::string> usable_device_hours;
};

// GET /v1/allocations
struct Allocations {
  std::string currency;  // Empty if there is no tariff.
  std::string from;
  std::string to;
  std::string by;
  std::vector<AllocationSum> items;
  AllocationSum total;
  std::vector<InventoryDay> days;    // If requested.
  std::vector<std::string> refused;  // Records that violate a rule, with the reason; they are not counted.
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::Allocations)
