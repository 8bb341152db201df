// The ledger with its store: what the slices of this node hold, in memory and on disk.
#pragma once

#include <memory>

#include "ledger/store.h"

namespace carve::node {

class Books {
 public:
  explicit Books(std::unique_ptr<ledger::Store> store) : store_(std::move(store)) {}

  // Applies what the store has to the empty ledger.
  Outcome<void> load();
  const ledger::Ledger& ledger() const { return ledger_; }
  // Stores the change, then applies it. After a failure nothing has changed.
  Outcome<void> post(const ledger::Change& change) { return ledger::post(ledger_, *store_, change); }
  Outcome<std::vector<ledger::UsageRecord>> records_after(uint64_t id, size_t most) const {
    return store_->records_after(id, most);
  }
  Outcome<std::vector<ledger::UsageRecord>> records(const std::vector<uint64_t>& ids) const {
    return store_->records(ids);
  }
  // Returns the living record of this name, or null.
  const ledger::UsageRecord* find(const std::string& name) const { return ledger_.find(name); }

 private:
  ledger::Ledger ledger_;
  std::unique_ptr<ledger::Store> store_;
};

ledger::Stamp stamp_now();  // UTC, the boot, CLOCK_MONOTONIC.

}  // namespace carve::node
