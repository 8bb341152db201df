// Copies the usage records of one node: the new records of its ledger, and changes to records that had not
// ended. A copy of an ended record never changes.
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
  // Returns the records with ids above `id` in ascending order: all of them, or at least one.
  virtual Outcome<std::vector<ledger::UsageRecord>> after(uint64_t id) = 0;
  // Returns the records with these ids.
  virtual Outcome<std::vector<ledger::UsageRecord>> of(const std::vector<uint64_t>& ids) = 0;
};

struct CopyTerms {
  std::function<bool(const std::string& queue)> is_prepaid;
  ledger::Stamp now;  // Taken before the source is read.
  // Called with the rows that were written, if it is set.
  std::function<void(const std::vector<UsageRow>&)> written = nullptr;
};

// Returns the number of records written. If the agent's ledger still has the first copied record but not the
// newest one, it has lost its newest records, and no record is copied twice. If it lacks both, the agent has
// started a new ledger, which is copied from the beginning. A lost open record ends at the time at which the
// agent was last seen.
Outcome<size_t> copy_usage(UsageStore&, const std::string& node, UsageSource&, const CopyTerms&);

}  // namespace carve::controller
