// Invoices of the controller's API. Numbers that determine money are strings with six decimals, which are
// exact. Times are RFC 3339 in UTC.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include "wire/api/json.h"

namespace carve::api {

// The use of one pod on one device in one interval with constant terms and tariff.
struct BillLine {
  std::string id;    // The record's part: "n1.7.0".
  std::string node;  // "n1"
  std::string account;
  std::string namespace_;
  std::string
      kind;  // "service", "application", "job", "pod" on Kubernetes, or "slice" if requested by a user.
  std::string name;
  std::string pod;  // On Kubernetes the pod and its container, "web-0/main"; else the slice.
  std::string queue;
  std::string device;
  std::string model;
  std::string from;
  std::string to;
  bool open = false;    // The slice had not ended when its node was last seen.
  std::string seconds;  // Billed seconds.
  uint64_t memory_bytes = 0;
  uint64_t usable_bytes = 0;
  uint32_t share_bp = 0;
  std::string ratio;
  std::string ratio_by;  // "whole device", "share", "memory"
  std::string units;     // Units per hour of this model. Empty if the model has no price.
  std::string gpu_hours;
  std::string price;  // Price of a GPU-hour.
  std::string amount;
  std::string used_gpu_hours;  // Busy time times units. An interval gets its proportional part of a record.
  uint64_t peak_bytes = 0;     // Most memory of the slice on one device, over its whole record.
  // The smallest slice that would have been sufficient: whole percent of the compute, whole MiB.
  uint64_t smaller_memory_bytes = 0;
  uint32_t smaller_share_bp = 0;
  std::string smaller_gpu_hours;
  std::string smaller_amount;
  std::string unpriced;                       // Why the line has no price, or empty.
  std::map<std::string, std::string> labels;  // The labels of the slice.
  std::string formula;
};

struct BillSum {
  std::string key;
  bool is_rest = false;         // The sum of the lines without a group, such as lines without the label.
  std::optional<uint32_t> uid;  // The user's, if the groups are users.
  uint64_t lines = 0;
  std::string gpu_hours;
  std::string amount;
  std::string used_gpu_hours;
  std::string unpriced_seconds;
};

// GET /v1/bills
struct Bill {
  std::string currency;  // Empty if there is no tariff.
  std::string from;
  std::string to;
  std::string by;
  std::vector<BillSum> items;
  BillSum total;
  std::vector<BillLine> lines;       // If requested.
  std::vector<std::string> refused;  // Records that violate a rule, with the reason; they have no line.
};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::BillLine)
CARVE_DECLARE_DOCUMENT(api::Bill)
