// The seam between the ledger and whatever keeps it over a restart. One implementation writes SQLite
// (node/store), another is the vector that tests use.
#pragma once

#include <vector>

#include "ledger/ledger.h"

namespace carve::ledger {

class Store {
 public:
  virtual ~Store() = default;

  // Makes the change durable before it returns. A failure (disk full, not writable) means that nothing of
  // it was kept.
  virtual Outcome<void> write(const Change&) = 0;

  // What there is to apply to an empty ledger: the devices with nothing reserved (what is held comes before
  // the reserve), all living uses and the newest Ledger::max_ended_records ended ones in the order of their
  // ids, then the devices with their reserves.
  virtual Outcome<std::vector<Change>> read() = 0;
};

// Decided, kept, posted: the only way in which production changes a ledger.
inline Outcome<void> post(Ledger& ledger, Store& store, const Change& change) {
  Ledger tried = ledger;  // Nothing is written that could not be applied.
  if (const auto good = tried.apply(change); !good) return good;
  if (const auto kept = store.write(change); !kept) return kept;
  ledger = std::move(tried);
  return {};
}

}  // namespace carve::ledger
