// Copies the usage records of one node: the new records of its ledger, and changes to records that had not
// ended. A copy of an ended record never changes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/billing/ledger_copy.h"

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

// Called with the rows that were written.
using WrittenRows = std::function<void(const std::vector<UsageRow>&)>;

struct CopyTerms {
  LedgerCopy::IsPrepaid is_prepaid;
  ledger::Stamp now;  // Taken before the source is read.
  WrittenRows written = nullptr;
};

// Stores a step of a copy in one transaction.
Outcome<void> write_copy(UsageStore&, const std::string& node, const CopyWrite&, const WrittenRows&);

// Copies in the order that LedgerCopy decides, and stores each step. Returns the number of records written.
Outcome<size_t> copy_usage(UsageStore&, const std::string& node, UsageSource&, const CopyTerms&);

}  // namespace carve::controller
