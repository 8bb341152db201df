// What a caller asks of an invoice.
#pragma once

#include <functional>
#include <string>

#include "bill/invoice.h"
#include "controller/billing/usage_row.h"
#include "core/words.h"

namespace carve::controller {

enum class BillBy : uint8_t { account, queue, job, service, device };

struct BillQuery {
  bill::Window window;
  BillBy by = BillBy::account;
  std::string account;  // Of these records alone; empty: all.
  bool with_lines = false;
  bool only_idle =
      false;         // Lines for which a smaller slice would have been enough, the largest difference first.
  std::string line;  // Of this part of a record alone: "n1.7.0"; empty: all.
  // Returns whether the caller may see a record.
  std::function<bool(const UsageRow&)> may_see = nullptr;
};

}  // namespace carve::controller

template <>
struct carve::Words<carve::controller::BillBy> {
  static constexpr const char* kind = "grouping";
  static constexpr std::string_view words[] = {"account", "queue", "job", "service", "device"};
};
