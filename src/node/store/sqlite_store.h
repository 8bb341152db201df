// The ledger on disk: one SQLite file (sqlite/database.h). An acknowledged change survives a power failure.
// After a damaged file was moved aside, the caller rebuilds the live records from the running slices
// (node/agent).
#pragma once

#include <memory>
#include <string>

#include "ledger/store.h"
#include "sqlite/database.h"

namespace carve::node {

class SqliteStore : public ledger::Store {
 public:
  struct Opened {
    std::unique_ptr<SqliteStore> store;
    std::string moved_aside;  // New path of the damaged file; empty if the file was sound or new.
    std::string damage;       // Description of the damage.
  };
  // `now_s` becomes part of the new name of a damaged file. Fails without permission, on a full disk, and for
  // a file with another schema.
  static Outcome<Opened> open(const std::string& path, int64_t now_s);

  Outcome<void> write(const ledger::Change&) override;
  ledger::Generation generation() const override { return generation_; }
  Outcome<void> raise_changes(uint64_t changes) override;
  Outcome<std::vector<ledger::Change>> read() override;
  Outcome<std::vector<ledger::UsageRecord>> records_after(uint64_t id, size_t most) override;
  Outcome<std::vector<ledger::UsageRecord>> records(const std::vector<uint64_t>& ids) override;

  static constexpr int schema_version = 9;

  // Limits the file's size in pages, for tests of a full disk.
  void limit_pages(int64_t pages) { database_.limit_pages(pages); }

 private:
  explicit SqliteStore(sqlite::Database database) : database_(std::move(database)) {}
  Outcome<void> read_generation();
  Outcome<void> check();

  sqlite::Database database_;
  ledger::Generation generation_;
};

}  // namespace carve::node
