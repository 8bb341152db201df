// The ledger on disk: one SQLite file in WAL mode. Each change is synced (about 1 ms), so an acknowledged
// change survives a power failure. The file has a schema version. An older schema is migrated in one
// transaction; a newer one is refused and stays unchanged.
//
// A damaged file is moved aside, never deleted: `ledger.db.corrupt-<UTC seconds>`. The caller then rebuilds
// the living part from the running slices (node/agent) and reports it.
#pragma once

#include <memory>
#include <string>

#include "ledger/store.h"

struct sqlite3;

namespace carve::node {

class SqliteStore : public ledger::Store {
 public:
  struct Opened {
    std::unique_ptr<SqliteStore> store;
    std::string moved_aside;  // New path of the damaged file; empty: the file was sound, or new.
    std::string damage;       // Description of the damage.
  };
  // `now_s` is part of a damaged file's new name. Fails without permission, on a full disk and for a newer
  // schema.
  static Outcome<Opened> open(const std::string& path, int64_t now_s);

  Outcome<void> write(const ledger::Change&) override;
  Outcome<std::vector<ledger::Change>> read() override;

  static constexpr int schema_version = 4;

  // Limits the file's size in pages, for tests of a full disk.
  void limit_pages(int64_t pages);

  ~SqliteStore() override;

 private:
  SqliteStore(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  Outcome<void> prepare();
  tl::unexpected<Failure> trouble(const char* doing, int code = 0) const;

  sqlite3* db_;
  std::string path_;
};

}  // namespace carve::node
