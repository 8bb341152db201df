// The ledger with its store: what the slices of this node hold, in memory and on disk.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "ledger/store.h"

namespace carve::node {

// The ledger's progress, as stored in the runtime directory. That directory belongs to this boot and is lost
// independently of the ledger, so a comparison of the two shows whether the ledger has lost changes.
struct LedgerMark {
  ledger::Generation generation;
  uint64_t last_id = 0;  // Largest record id so far.
  std::string boot_id;
  // Whether the ledger had lost changes that are not completely restored yet.
  bool is_behind = false;
};

class Books {
 public:
  explicit Books(std::unique_ptr<ledger::Store> store) : store_(std::move(store)) {}

  // Applies the contents of the store to the empty ledger.
  Outcome<void> load();
  const ledger::Ledger& ledger() const { return ledger_; }
  // Stores the change and then applies it. If this fails, nothing is changed.
  Outcome<void> post(const ledger::Change& change);
  // Returns whether the ledger is older than the mark or a different one. Skips the ids that were already
  // used.
  bool is_behind(const std::optional<LedgerMark>& mark);
  // Writes a mark now and after each change. `mark` is the mark found at the start. Must be called when the
  // ledger contains everything from the state files.
  Outcome<void> begin_marks(const std::optional<LedgerMark>& mark, std::function<void(LedgerMark)> write);
  // Writes the mark again after its file was lost.
  void rewrite_mark() const {
    if (write_mark_) write_mark_(mark());
  }
  // Returns the mark of the current ledger.
  LedgerMark mark() const;
  Outcome<std::vector<ledger::UsageRecord>> records_after(uint64_t id, size_t most) const {
    return store_->records_after(id, most);
  }
  Outcome<std::vector<ledger::UsageRecord>> records(const std::vector<uint64_t>& ids) const {
    return store_->records(ids);
  }
  // Returns the live record with this name, or null.
  const ledger::UsageRecord* find(const std::string& name) const { return ledger_.find(name); }

 private:
  std::function<void(LedgerMark)> write_mark_;
  ledger::Ledger ledger_;
  std::unique_ptr<ledger::Store> store_;
};

ledger::Stamp stamp_now();  // UTC, the boot, CLOCK_MONOTONIC.

}  // namespace carve::node
