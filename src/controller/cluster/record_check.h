// The checks of a node's usage records. A node may be hostile: it may send any bytes, records of pods that it
// never had, and impossible amounts. Responses are bounded, and a record that breaks a rule is not stored.
// A hostile node can still exaggerate the time of its own pods, because the node is the meter.
#pragma once

#include <string>
#include <vector>

#include "controller/billing/ledger_copy.h"
#include "controller/cluster/pod_evidence.h"

namespace carve::controller {

// Maximum number of records per response. With the longest labels, a record has about 32 KiB.
inline constexpr size_t max_records_per_page = 100;
inline constexpr size_t max_page_bytes = 4 << 20;

struct CheckedPage {
  std::vector<ledger::UsageRecord> records;  // Those to store.
  uint64_t last = 0;                         // The largest id of the response; 0 if it was empty.
  // The refused records, with reasons: "record 7: ...". At most max_refusals, of `refused`.
  std::vector<std::string> refusals;
  size_t refused = 0;
  // Why the records from here on cannot be decided yet; empty if all were. `records` has those before.
  std::string undecided;
};
inline constexpr size_t max_refusals = 8;

// Parses the response to a request and checks its records. Fails if the response as a whole breaks a rule, or
// if a record that was stored before has become wrong; then nothing of it is stored. `now_ns` is UTC.
// Returns the query of the request: "after=7&limit=100", "ids=1,2".
std::string usage_query(const LedgerCopy::Request&);

Outcome<CheckedPage> check_page(const std::string& body, const LedgerCopy::Request&, const std::string& node,
                                const PodEvidence&, int64_t heard_ns, int64_t now_ns);

}  // namespace carve::controller
