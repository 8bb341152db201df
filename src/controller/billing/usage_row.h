// The controller's copy of an agent's usage record, with the labels by which invoices are grouped. Most
// records have one device, constant terms and one boot; for these the columns are sufficient. The other
// records are also stored as JSON.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "bill/invoice.h"
#include "ledger/usage_record.h"

namespace carve::controller {

struct UsageRow {
  std::string node;
  uint32_t ledger =
      0;            // Number of the node's ledger, from 1: an agent that lost its ledger starts a new one.
  uint64_t id = 0;  // Id of the record in its ledger.
  std::string account;
  uint32_t owner_uid = 0;
  std::string name_space;
  // "service", "application", "job", ...; without a workload "pod" on Kubernetes, and "slice" otherwise.
  std::string kind;
  std::string name;      // Name of the workload, the pod or the slice.
  std::string pod;       // Name of the pod on Kubernetes, else of the slice.
  std::string queue;     // Empty if there is none.
  bool prepaid = false;  // Whether its queue was prepaid when the record was first copied.
  bool exclusive = false;
  Uuid device;  // This and the next four describe the first part.
  std::string model;
  Bytes usable;
  Bytes memory;
  Share share;
  int64_t from_ns = 0;  // UTC.
  int64_t from_monotonic_ns = 0;
  std::string boot_id;
  int64_t end_ns = 0;  // UTC of the grant, plus the duration; 0 while the slice lives.
  uint64_t busy_ns = 0;
  uint64_t peak_bytes = 0;
  std::string details;    // The record as JSON, if the columns are incomplete.
  std::string labels;     // Labels of the slice that are not columns, as JSON; empty if there are none.
  std::string container;  // The pod's container on Kubernetes; else empty.
};

using UsageLabels = std::map<std::string, std::string>;
// Returns the labels of a row. A row whose labels cannot be read has none.
UsageLabels labels_of(const UsageRow&);

// Returns the row of a record. `is_prepaid` returns whether the named queue is prepaid. It is not called for
// pods: a user chooses a pod's labels, and no queue of Carve has admitted it.
UsageRow usage_row(const std::string& node, uint32_t ledger, const ledger::UsageRecord&,
                   const std::function<bool(const std::string& queue)>& is_prepaid);

// Returns the end of an ended record in UTC: its grant, plus the duration.
int64_t utc_end_ns(const ledger::UsageRecord&);

// Returns the usage that goes into an invoice. Fails if `details` cannot be parsed.
Outcome<bill::Usage> usage_of(UsageRow);

// Returns the name of the node's ledger for messages and for the ids of lines: "n1", "n1@2".
std::string ledger_name(const UsageRow&);
// Returns the node of a ledger's name: "n1".
std::string node_name(const std::string& ledger_name);

}  // namespace carve::controller
