// usage.db: the copies of all nodes' usage records, in one SQLite file (sqlite/database.h). One thread uses
// the store.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bill/invoice.h"
#include "controller/billing/usage_row.h"
#include "sqlite/database.h"

namespace carve::controller {

// The part of a copied record that never changes.
struct CopiedRecord {
  uint64_t id = 0;
  int64_t from_ns = 0;  // UTC.
  std::string boot_id;
  std::string account;

  friend bool operator==(const CopiedRecord&, const CopiedRecord&) = default;
};

// The position up to which a node's ledger was copied.
struct CopyPosition {
  uint32_t ledger = 0;                 // The ledger that was copied last; 0 if nothing has been copied.
  uint32_t newest_ledger = 0;          // The largest number of a ledger of this node.
  std::optional<CopiedRecord> newest;  // The record with the largest id.
  std::optional<CopiedRecord> oldest;  // The record with the smallest id.
  std::vector<CopiedRecord> open;      // Records that had not ended, by id.
  ledger::Stamp seen;                  // When the agent last responded, if a record was open then.
};

// When a node's agent responded.
struct SeenLedger {
  std::string node;
  uint32_t ledger = 0;
  ledger::Stamp at;
};

// The number of devices that a node has from this time on.
struct InventoryChange {
  std::string node;
  int64_t from_ns = 0;  // UTC.
  uint32_t devices = 0;

  friend bool operator==(const InventoryChange&, const InventoryChange&) = default;
};

class UsageStore {
 public:
  struct Opened;
  // `now_s` becomes part of the new name of a damaged file. Reads the whole file once, which takes seconds if
  // it has millions of records.
  static Outcome<Opened> open(const std::string& path, int64_t now_s);

  Outcome<CopyPosition> position(const std::string& node);
  // Writes the rows in one transaction, together with the time at which the node's agent responded, if any. An
  // existing row with the same node, ledger and id is replaced, except for its `prepaid`.
  Outcome<void> write(const std::vector<UsageRow>&, const std::optional<SeenLedger>& seen = std::nullopt);
  // Returns the number of the node's ledger that has a record with this id and begin; 0 if none has it.
  Outcome<uint32_t> ledger_of(const std::string& node, const CopiedRecord&);
  // Returns the row if it exists.
  Outcome<std::optional<UsageRow>> find(const std::string& node, uint32_t ledger, uint64_t id);
  // Calls `visit` for each record that may overlap the window: first the records that began in it, then those
  // that began before it. Stops if `visit` returns false.
  Outcome<void> each(const bill::Window&, const std::function<bool(UsageRow&&)>& visit);
  // Calls `visit` for each record of a workload, until it returns false.
  Outcome<void> of_workload(const std::string& kind, const std::string& name_space, const std::string& name,
                            const std::function<bool(UsageRow&&)>& visit);
  // Returns when the agent last responded while it had an open record.
  std::optional<ledger::Stamp> seen_at(const std::string& node, uint32_t ledger);
  Outcome<uint64_t> count();
  // Records the nodes whose number of devices has changed. A node that is not in `devices` has none.
  Outcome<void> record_inventory(const std::map<std::string, uint32_t>& devices, int64_t now_ns);
  // Returns all changes, oldest first.
  Outcome<std::vector<InventoryChange>> inventory();

  static constexpr int schema_version = 5;

 private:
  explicit UsageStore(sqlite::Database database) : database_(std::move(database)) {}

  sqlite::Database database_;
};

struct UsageStore::Opened {
  UsageStore store;
  std::string moved_aside;  // New path of a damaged file; empty if the file was sound or new.
  std::string damage;       // Description of the damage.
};

}  // namespace carve::controller
