// Copies the usage records of one node: what is new in its ledger, and what has changed of records that had
// not ended. A copy of an ended record never changes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/billing/usage_store.h"

namespace carve::controller {

// The agent's usage records (GET /v1/usage).
class UsageSource {
 public:
  virtual ~UsageSource() = default;
  // Returns records with a larger id, the smallest first: all of them, or at least one.
  virtual Outcome<std::vector<ledger::UsageRecord>> after(uint64_t id) = 0;
  // Returns the records with these ids.
  virtual Outcome<std::vector<ledger::UsageRecord>> of(const std::vector<uint64_t>& ids) = 0;
};

struct CopyTerms {
  std::function<bool(const std::string& queue)> is_prepaid;
  ledger::Stamp now;  // Before the source is asked.
};

// Returns how many records were written. If the newest copied record is not in the agent's ledger any more,
// but the first one is, the ledger has lost its newest records: no record is copied twice. Else the agent has
// begun another ledger, which is copied from its begin. What was open and is lost ends when the agent was
// last seen.
Outcome<size_t> copy_usage(UsageStore&, const std::string& node, UsageSource&, const CopyTerms&);

}  // namespace carve::controller
