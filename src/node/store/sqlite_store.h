// The ledger on disk: one SQLite file in WAL mode, synced at each change (about 1 ms), so that what was
// answered survives a power cut. The schema carries its version; an older one is migrated in one
// transaction, a newer one is refused and left as it is.
//
// A file that is damaged is moved aside, never deleted: `ledger.db.corrupt-<UTC seconds>`. The caller then
// rebuilds the living part from what runs (node/agent) and says so.
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
    std::string moved_aside;  // Where the damaged file lies now; empty: it was sound, or new.
    std::string damage;       // What was wrong with it.
  };
  // `now_s` names a damaged file. Failure: no permission, disk full, a newer schema.
  static Outcome<Opened> open(const std::string& path, int64_t now_s);

  Outcome<void> write(const ledger::Change&) override;
  Outcome<std::vector<ledger::Change>> read() override;

  static constexpr int schema_version = 4;

  // For tests of a full disk: the file may not grow beyond so many pages.
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
