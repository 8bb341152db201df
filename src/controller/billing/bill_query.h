// A caller's query for an invoice.
#pragma once

#include <functional>
#include <string>

#include "bill/invoice.h"
#include "controller/billing/usage_row.h"
#include "core/words.h"

namespace carve::controller {

enum class BillBy : uint8_t { account, queue, job, service, device, user, name_space, node };

struct BillQuery {
  bill::Window window;
  BillBy by = BillBy::account;
  std::string by_label;  // Key of the label to group by, instead of `by`; empty for none.
  std::string account;   // Account of the records; empty for all.
  // Returns whether records with these labels are part of the invoice. A null function selects all records.
  std::function<bool(const UsageLabels&)> selects = nullptr;
  bool with_lines = false;
  bool only_idle = false;  // List only lines for which a smaller slice would do, largest difference first.
  bool by_day = false;     // Only for allocations: also the granted time of each day.
  std::string line;        // Only this part of a record, for example "n1.7.0"; empty for all.
  // Returns the name of a user. A null function shows uids.
  std::function<std::string(uint32_t uid)> user_name = nullptr;
  // Returns whether the caller may see a record.
  std::function<bool(const UsageRow&)> may_see = nullptr;
};

}  // namespace carve::controller

template <>
struct carve::Words<carve::controller::BillBy> {
  static constexpr const char* kind = "grouping";
  static constexpr std::string_view words[] = {"account", "queue", "job",       "service",
                                               "device",  "user",  "namespace", "node"};
};
