// The interface between the ledger and its durable storage. One implementation uses SQLite (node/store); the
// other is a vector, for tests.
#pragma once

#include <vector>

#include "core/invariant.h"
#include "ledger/ledger.h"

namespace carve::ledger {

// Identifies the ledger in a store, and counts the changes that were written to it. A store that lost its
// newest changes or was replaced by an older copy has a smaller count than was written.
struct Generation {
  std::string ledger;  // A random id of this file.
  uint64_t changes = 0;

  friend bool operator==(const Generation&, const Generation&) = default;
};

class Store {
 public:
  virtual ~Store() = default;

  // Makes the change durable before returning. If it fails (disk full, not writable), nothing of the change
  // is stored.
  virtual Outcome<void> write(const Change&) = 0;

  // `changes` is incremented with each change that is written.
  virtual Generation generation() const = 0;
  // Raises `changes` to this number, after lost changes were restored.
  virtual Outcome<void> raise_changes(uint64_t changes) = 0;

  // Returns the changes to apply to an empty ledger, in this order: the devices without a reserve (grants
  // come before the reserve), all live records, the newest Ledger::max_ended_records ended ones, the
  // devices with their reserves, and the last Alive if there was one. The records are ordered by their ids.
  virtual Outcome<std::vector<Change>> read() = 0;

  // Returns at most `most` live and ended records with larger ids, ordered by id. Unlike the ledger, the
  // store has all records that ever existed.
  virtual Outcome<std::vector<UsageRecord>> records_after(uint64_t id, size_t most) = 0;
  // Returns the records with these ids, in their order. An unknown id is skipped.
  virtual Outcome<std::vector<UsageRecord>> records(const std::vector<uint64_t>& ids) = 0;
};

// Checks the change, stores it, then applies it. Production code changes a ledger only in this way.
inline Outcome<void> post(Ledger& ledger, Store& store, const Change& change) {
  Ledger tried = ledger;  // A copy, because a change that cannot be applied must not be stored.
  if (const auto good = tried.apply(change); !good) return good;
  invariant(tried.next_id() >= ledger.next_id(), "an id that was given out is never given out again");
  if (const auto kept = store.write(change); !kept) return kept;
  ledger = std::move(tried);
  return {};
}

}  // namespace carve::ledger
