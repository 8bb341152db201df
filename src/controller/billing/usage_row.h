// A usage record as the controller keeps it: a copy of the agent's record, with what invoices group by. Most
// records have one device, constant terms and one boot; then the columns are all there is to know. The others
// also have the whole record as JSON.
#pragma once

#include <functional>
#include <string>

#include "bill/invoice.h"
#include "ledger/usage_record.h"

namespace carve::controller {

struct UsageRow {
  std::string node;
  uint32_t ledger = 0;  // Of the node, counted from 1: an agent whose ledger is lost begins another.
  uint64_t id = 0;      // Of the record, in its ledger.
  std::string account;
  uint32_t owner_uid = 0;
  std::string name_space;
  std::string kind;      // "service", "application", "job"; "slice": requested by a user.
  std::string name;      // Of the workload, or of the slice.
  std::string pod;       // Name of the slice.
  std::string queue;     // Empty: none.
  bool prepaid = false;  // Its queue was, when the record was first copied.
  bool exclusive = false;
  Uuid device;  // This and the next four are those of the first part.
  std::string model;
  Bytes usable;
  Bytes memory;
  Share share;
  int64_t from_ns = 0;  // UTC.
  int64_t from_monotonic_ns = 0;
  std::string boot_id;
  int64_t end_ns = 0;  // UTC of the grant, plus the duration; 0: the slice lives.
  uint64_t busy_ns = 0;
  uint64_t peak_bytes = 0;
  std::string details;  // The record as JSON, if the columns are not all of it.
};

// Returns the row of a record. `is_prepaid` says it of a queue's name.
UsageRow usage_row(const std::string& node, uint32_t ledger, const ledger::UsageRecord&,
                   const std::function<bool(const std::string& queue)>& is_prepaid);

// Returns what an invoice is made of. Fails if `details` cannot be read.
Outcome<bill::Usage> usage_of(UsageRow);

// Returns the name of the node's ledger in sentences and in the ids of lines: "n1", "n1@2".
std::string ledger_name(const UsageRow&);

}  // namespace carve::controller
